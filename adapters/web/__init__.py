"""Text and events on the web: an HTTP interface for people who type, observers who watch, and developers who debug.

Text, captions and events only; no sound ever crosses it. What is served is read from the public stream and from the
chart's macrosteps; what a client asks for becomes a fact. Nothing here decides anything about a conversation.

The modules that need Starlette and uvicorn (the extra `web`) are imported only where something is served.
"""
