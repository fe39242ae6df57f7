"""Chat models that judges ask: over HTTP, or in this process."""
