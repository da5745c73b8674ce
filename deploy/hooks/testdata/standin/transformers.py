"""Stands in for what the trainer hook uses of transformers."""


class TrainerCallback:
    def on_train_begin(self, args, state, control, **kwargs):
        pass


class Trainer:
    def __init__(self, callbacks):
        self.callbacks, self.steps = callbacks, 0

    def train(self):
        for callback in self.callbacks:
            callback.on_train_begin(None, self, None, model=None)
        self.steps += 1
