import gymnasium

from prover import UnicodeText
from prover.errors import EnvError


class Guess(gymnasium.Env):
    """Find a number below 100; every answer says higher or lower."""

    observation_space = action_space = UnicodeText()
    numbers = {f"{n:02d}": n for n in range(100)}
    splits = {"train": [*numbers][:80], "test": [*numbers][80:]}

    def tasks(self, split):
        return self.splits[split]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        task = options["task"] if options else self.splits["train"][self.np_random.integers(80)]
        return self.restore((self.numbers[task], None))

    def step(self, action):
        secret, guess = self.state
        if guess == secret:
            raise EnvError("expected a running episode, got a finished one; call reset()")
        observation, info = self.restore((secret, self.numbers.get(action, guess)))
        return observation, float(info["success"]), info["success"], False, info

    def snapshot(self):
        return self.state

    def restore(self, snapshot):
        self.state = secret, guess = snapshot
        hint = "Say a number below 100." if guess is None else "Higher." if guess < secret else "Lower."
        return hint, {"success": guess == secret, "admissible_actions": [*self.numbers]}

    def state_key(self):
        return repr(self.state)
