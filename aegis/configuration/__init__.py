"""The configuration file of a root, ``.aegis.yaml``: ``read_configuration`` returns a ``Parsed``.

A section is a frozen class whose fields are declared with ``setting``; ``sections.Configuration``
lists the sections. The parser, its messages, ``config check`` and the page
``docs/reference/configuration.md`` are derived from the declarations. ``BadConfiguration`` has the
errors with their lines. Of YAML, only mappings and single values are accepted. Every module except
``file`` is pure.
"""
