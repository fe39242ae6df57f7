"""Fixtures of the tests of backends."""

from collections.abc import Iterator

import pytest
from chat_server import ChatServer


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A server that says hello until its script says otherwise."""
    found = ChatServer()
    yield found
    found.close()
