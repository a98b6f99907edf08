"""Everything that is computed from the command set and the streams, with no line per command.

``wire`` checks arguments and writes replies, ``defaults`` fills in the configuration's values,
``schema`` and ``tool_schema`` make JSON Schema, ``document`` and ``streams_document`` make pages.
"""
