"""Checkpoints that count: each under a number of its own, and of many the last few kept, as TensorFlow keeps them."""

import json
from pathlib import Path

from levels.mid_level import at_least
from levels_more.checks import expect
from levels_more.saving import files, model

_LIST = "checkpoint"  # the file that says which there are, the last one last


class Checkpoint(model.Checkpoint):
    """That of levels; `save` puts a number behind the name."""

    saves = 0

    def save(self, file_prefix):
        """Write the numbers to a file of that name, -1 and so on behind it. Returns its name."""
        self.saves += 1
        path = Path(f"{file_prefix}-{self.saves}")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.write(path)
        _note(path.parent, [*_noted(path.parent), path.name])
        return str(path)

    def restore(self, save_path):
        """Give all variables the numbers that a file holds; without a file, None, nothing. Returns the checkpoint."""
        return self if save_path is None else super().restore(save_path)

    read = restore

    def expect_partial(self):
        """The checkpoint: `restore` has given back all, or raised an error."""
        return self

    assert_consumed = assert_existing_objects_matched = expect_partial


class CheckpointManager:
    """Saves a checkpoint in a folder, again and again, and keeps the last `max_to_keep` files: None keeps all.

    Raises TypeError for what is no Checkpoint, ValueError for fewer than 1.
    """

    def __init__(self, checkpoint, directory, max_to_keep, checkpoint_name="ckpt"):
        self.checkpoint = expect(isinstance(checkpoint, Checkpoint), "checkpoint", checkpoint, "a tf.train.Checkpoint")
        self.directory, self.prefix = Path(directory), checkpoint_name
        self.most = None if max_to_keep is None else at_least(1, "max_to_keep", max_to_keep)
        numbers = [name.rpartition("-")[2] for name in _noted(self.directory)]
        checkpoint.saves = max([checkpoint.saves, *(int(number) for number in numbers if number.isdecimal())])

    @property
    def checkpoints(self):
        """The names of the files that are kept, the last one last."""
        return [str(self.directory / name) for name in _noted(self.directory)]

    @property
    def latest_checkpoint(self):
        """The name of the last one; None before there is any."""
        return latest_checkpoint(self.directory)

    def save(self, checkpoint_number=None):
        """Write one more, under that number or the next. Returns its name."""
        if checkpoint_number is not None:
            self.checkpoint.saves = int(checkpoint_number) - 1
        path = self.checkpoint.save(self.directory / self.prefix)
        names = [*dict.fromkeys(_noted(self.directory))]
        for name in names[: -self.most] if self.most else ():
            (self.directory / name).unlink(missing_ok=True)
        _note(self.directory, names[-self.most :] if self.most else names)
        return path

    def restore_or_initialize(self):
        """Go on from the last one. Returns its name; None where there is none."""
        self.checkpoint.restore(self.latest_checkpoint)
        return self.latest_checkpoint


def _noted(folder):
    path = Path(folder) / _LIST
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def _note(folder, names):
    files.replace(Path(folder) / _LIST, json.dumps(names).encode())


def latest_checkpoint(checkpoint_dir):
    """The name of the last file that was saved in a folder; None before there is any."""
    names = _noted(checkpoint_dir)
    return str(Path(checkpoint_dir) / names[-1]) if names else None


TRAIN = {each.__name__: each for each in (Checkpoint, CheckpointManager, latest_checkpoint)}
