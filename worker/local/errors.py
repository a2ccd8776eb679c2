"""What goes wrong with the embedded servers, each in one line that says what to do."""


class LocalStackError(Exception):
    """An embedded server or a process of the stack cannot run; the message is one line, fit for a terminal."""


class ServerBusyError(LocalStackError):
    """Another living process owns this server's folder (it runs the server itself, or is starting or ending it)."""
