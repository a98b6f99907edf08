"""Web Push: notifications for browsers whose page is closed (RFC 8030, 8291, 8292).

- ``endpoint``    which addresses a push service may have. Pure.
- ``encryption``  the content of a push message, for one browser.
- ``vapid``       the key of the daemon, by which push services know it.
- ``notices``     the content of a notification. Pure.
- ``rows``        the durable state, as rows of a table. Pure.
- ``network``     how a push service is reached: its address is checked, and only it connected to.
- ``delivery``    sends one message, on ``httpx2``.
- ``desk``        the actor: who is subscribed, what waits, what was sent.

Rules: a push service learns the length of a message and when it is sent, nothing else. Its address
comes from a browser, so it is treated as hostile. Nothing that fails here costs the daemon more.
"""
