"""Every error that ProVer raises on purpose.

The tree::

    ProverError
    ├── ConfigError         (ValueError)    a config, an option or an argument is wrong
    ├── DataError           (FileNotFoundError) data of an environment is missing or incomplete
    ├── UnknownNameError    (LookupError)   a task, split, environment, judge or policy of that name does not exist
    ├── EnvError            (RuntimeError)  an environment broke its contract or failed
    │   ├── EnvTimeoutError (TimeoutError)  an environment answered too late or not at all
    │   └── SnapshotError                   a snapshot cannot be taken, or restoring it brought back another state
    ├── TokenError          (ValueError)    token rows, masks or log-probabilities do not fit together
    ├── NumericsError       (ArithmeticError) a non-finite number at a place that is trained on
    ├── CheckpointError     (RuntimeError)  a checkpoint is incomplete, damaged or of another run
    ├── ServiceError        (ConnectionError) a service over HTTP gave no usable answer
    └── FailureShareError   (RuntimeError)  too large a share of episodes failed

Every message says what was expected, what was got and what to do. Each class also inherits the standard error that it
refines, so that callers who do not know ProVer still catch the right thing. All of them pickle.
"""


class ProverError(Exception):
    """Root of every error that ProVer raises on purpose."""


class ConfigError(ProverError, ValueError):
    """A config, an option or an argument is wrong; raised before anything heavy loads."""


class DataError(ProverError, FileNotFoundError):
    """Data of an environment is missing or incomplete; the message says how to get it."""


class UnknownNameError(ProverError, LookupError):
    """A task, split, environment, judge or policy of that name does not exist."""


class EnvError(ProverError, RuntimeError):
    """An environment broke its contract or failed."""


class EnvTimeoutError(EnvError, TimeoutError):
    """An environment answered too late or not at all."""


class SnapshotError(EnvError):
    """A snapshot cannot be taken, or restoring it did not bring back the same state."""


class TokenError(ProverError, ValueError):
    """Token rows, masks or log-probabilities do not fit together."""


class NumericsError(ProverError, ArithmeticError):
    """A non-finite number stands at a place that is trained on."""


class CheckpointError(ProverError, RuntimeError):
    """A checkpoint is incomplete, damaged or belongs to another run."""


class FailureShareError(ProverError, RuntimeError):
    """Too large a share of episodes failed."""


class ServiceError(ProverError, ConnectionError):
    """A service (a chat model, a retriever) gave no usable answer, after all retries that make sense.

    Args:
        message: What was expected, what was got, what to do.
        cause: Short code that is counted: ``timeout``, ``unreachable``, ``rate_limited``, ``server`` (5xx),
            ``unauthorized`` (401, 403), ``payment`` (402), ``refused`` (other 4xx), ``malformed``, ``budget``.
    """

    def __init__(self, message: str, cause: str = "malformed") -> None:
        super().__init__(message, cause)
        self.cause = cause

    def __str__(self) -> str:
        return str(self.args[0])
