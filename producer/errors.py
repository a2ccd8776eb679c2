"""What a client can raise beside bad input; each is one line that says what to do."""


class ClientError(Exception):
    """The broker or the database does not answer, or the client was not given what the call needs; one line."""


class BrokerDown(ClientError):
    """The broker does not answer. The message was not sent; send it again, with a message_id to be safe."""


class TooBusy(ClientError):
    """The workers lag behind by more than the client was told to accept. Nothing was sent; come back later."""


class StillRunning(ClientError):
    """The time given to wait has passed. The message is safe; ask again later."""
