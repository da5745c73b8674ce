"""Stands in for what the trainer hook uses of axolotl."""


class BasePlugin:
    def add_callbacks_pre_trainer(self, cfg, model):
        return []
