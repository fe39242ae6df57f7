"""An environment of your own: find the right place of the three dials of a safe."""

import gymnasium

from prover import UnicodeText
from prover.errors import EnvError, UnknownNameError


class Safe(gymnasium.Env):
    observation_space = action_space = UnicodeText()
    splits = {"train": [f"{n:03d}" for n in range(900)], "test": [f"{n:03d}" for n in range(900, 1000)]}

    def tasks(self, split):
        if split not in self.splits:
            raise UnknownNameError(f"expected split 'train' or 'test', got {split!r}")
        return self.splits[split]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        code = (options or {}).get("task") or f"{self.np_random.integers(1000):03d}"
        if code not in self.splits["train"] + self.splits["test"]:
            raise UnknownNameError(f"expected a task of three digits, got {code!r}")
        return self.restore((code, "000" if code != "000" else "111"))

    def step(self, action):
        code, dials = self.state
        if dials == code:
            raise EnvError("expected a closed safe, got an open one; call reset()")
        if action in self.actions:
            dial, place = int(action[5]), action[-1]
            dials = dials[: dial - 1] + place + dials[dial:]
        observation, info = self.restore((code, dials))
        return observation, float(dials == code), dials == code, False, info

    actions = [f"dial {dial} to {place}" for dial in (1, 2, 3) for place in range(10)]

    def snapshot(self):
        return self.state

    def restore(self, snapshot):
        self.state = code, dials = snapshot
        right = sum(a == b for a, b in zip(code, dials, strict=True))
        return f"The dials say {dials}, {right} of 3 are right.", {"success": right == 3, "admissible_actions": self.actions}

    def state_key(self):
        return "-".join(self.state)
