"""Share a model on a hub with `huggingface_hub`: its folder and a card. No code is uploaded, and none is loaded."""

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from numbers import Real
from pathlib import Path

from levels_more import needed
from levels_more.checks import expect, file_name
from levels_more.high_level.model import Model
from levels_more.high_level.serialization import CLASSES
from levels_more.saving.files import replace
from levels_more.saving.model import TEXT, WEIGHTS, check_built, load_model, read_arrays, save, specs_of
from levels_more.saving.onnx import onnx_model

with needed():
    import huggingface_hub
    import onnx
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

CARD = """---
{front}
---

# {name}

A net of {numbers:,} numbers, made with *levels*. It takes {takes}.

- **Data:** {data}
- **How it was trained:** {trained}
- **Metrics:** {metrics}
- **Licence:** {licence}
- **Not in here:** {left}

```python
from levels_more.saving import from_pretrained
{before}
model = from_pretrained({repo}{own})
```

`{weights}` holds data and no code. {portable}
"""
NOT_TOLD = "not given"


def write_folder(model, folder, repo, data, metrics, license):
    """Write what a repository of a built model holds: the file of `save`, ONNX, and a card, unless there is one.

    If the model has no ONNX form, the card says why.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as beside:  # `save` accepts no folder with a card in it
        save(model, Path(beside, "model"))
        replace(folder / WEIGHTS, Path(beside, "model", WEIGHTS).read_bytes())
    portable = "`model.onnx` runs without `levels`; its inputs are x0, x1, …, its outputs y0, y1, …"
    try:
        replace(folder / "model.onnx", onnx_model(model).SerializeToString())
    except (ValueError, onnx.checker.ValidationError) as error:
        (folder / "model.onnx").unlink(missing_ok=True)
        portable = f"There is no ONNX file: {error}."
    if (folder / "README.md").exists():
        return
    front = {"library_name": "levels", "tags": ["levels"]}
    if license is not None:
        front["license"] = license
    own = requirements(read_arrays(folder / WEIGHTS)[TEXT].tobytes())
    text = CARD.format(
        front="\n".join(f"{key}: {json.dumps(value)}" for key, value in front.items()),
        name=line(model.name),
        numbers=sum(weights.size for weights in model.get_weights()),
        takes=", ".join(f"{s.dtype.name} {['rows', *s.shape[1:]]}".replace("'", "") for s in specs_of(model)),
        data=line(data or NOT_TOLD),
        trained=trained(model),
        metrics=line(", ".join(f"{key} {value:.4g}" for key, value in (metrics or {}).items()) or NOT_TOLD),
        licence=line(license or NOT_TOLD),
        left=f"{', '.join(own)}, which you need to load it" if own else "the data",
        before=f"\n# here import {', '.join(own)}: they are your own, and a model has no code" if own else "",
        repo=json.dumps(repo, ensure_ascii=False),  # a text of JSON is one of Python
        own=f", custom_objects={{{', '.join(f'{name!r}: {name}' for name in own)}}}" if own else "",
        weights=WEIGHTS,
        portable=portable,
    )
    huggingface_hub.ModelCard(text).save(folder / "README.md")


def line(text):
    """A text as one line, so that it begins no block on the card."""
    return " ".join(text.split())


def trained(model):
    """The optimizer and the losses that were given to `compile`, as text."""
    if model.chosen is None:
        return NOT_TOLD
    losses = ", ".join(getattr(loss, "__name__", None) or type(loss).__name__ for loss in model.chosen.losses if loss)
    return f"{model.chosen.optimizer!r}, on {losses}"


def requirements(config):
    """The names of the classes and functions that a model needs and that are neither ours nor in its config."""
    found = set()

    def look(entry):
        name = entry.get("class")
        found.update([name] if name is not None and name not in CLASSES else [])
        found.update([entry["def"]] if "def" in entry else [])
        return entry

    json.loads(config.decode(), object_hook=look)
    return sorted(found)


def checked_card(verb, model, data, metrics, license):
    """Return the entries of a built model's card. Raises TypeError unless they are texts, and a dict of numbers."""
    expect(isinstance(model, Model), f"{verb}: model", model, "a Model")
    check_built(model, verb)
    for name, text in (("data", data), ("license", license)):
        expect(text is None or isinstance(text, str), f"{verb}: {name}", text, "a text")
    numbers = metrics.items() if isinstance(metrics, dict) else [] if metrics is None else [(None, None)]
    fits = all(isinstance(name, str) and isinstance(number, Real) for name, number in numbers)
    expect(fits, f"{verb}: metrics", metrics, "a dict {name: number}")
    return {"data": data, "metrics": metrics, "license": license}


def http_error(at, error):
    """The OSError for an HTTP error of the hub, with the status and a cure."""
    status = getattr(error.response, "status_code", "?")
    cure = "; log in with a token that may do this:  hf auth login" if status in (401, 403) else ""
    cure = "; try again later" if status == 429 or str(status).startswith("5") else cure
    return OSError(f"{at}: the hub refuses with status {status}{cure}")


@contextmanager
def hub_request(verb, repo_id):
    """In this `with` block, errors of the hub become sentences with a cure. Errors of the model itself pass unchanged.

    Raises ConnectionError if the hub cannot be reached, FileNotFoundError for a missing model, revision or file,
    ValueError for an invalid name, OSError for a refusal.
    """
    at = f"{verb}: {repo_id}"
    try:
        yield
    except HFValidationError as error:
        raise ValueError(
            f"{at} is neither a folder that is here nor a name on the hub, 'name/model': {error}"
        ) from error
    except LocalEntryNotFoundError as error:
        refused = error.__cause__  # an HTTP error: then the hub was reached
        if isinstance(refused, HfHubHTTPError):
            raise http_error(at, refused) from error
        raise ConnectionError(f"{at}: the hub cannot be reached, and it was not fetched before") from error
    except RepositoryNotFoundError as error:
        raise FileNotFoundError(
            f"{at}: the hub has no such model, or does not show it to you: hf auth login"
        ) from error
    except RevisionNotFoundError as error:
        raise FileNotFoundError(f"{at}: the hub has this model, but not this revision of it") from error
    except EntryNotFoundError as error:
        raise FileNotFoundError(f"{at} holds no {WEIGHTS}: it is no model that `push_to_hub` made") from error
    except HfHubHTTPError as error:
        raise http_error(at, error) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("httpx", "httpx2"):  # depends on huggingface_hub's version
            raise ConnectionError(f"{at}: the hub cannot be reached ({type(error).__name__})") from error
        raise


def save_pretrained(
    model: Model,
    save_directory: str | os.PathLike,
    data: str | None = None,
    metrics: dict[str, float] | None = None,
    license: str | None = None,
) -> None:
    """Make a folder as on a hub: the file of `save`, model.onnx if the model has an ONNX form, and a card, README.md.

    data: a sentence on the training data; metrics: {name: number}; license: its short name, such as "mit". An existing
    card stays. Raises ValueError for a model that is not built, and for an argument that cannot be saved; TypeError
    for data, metrics or license of another type.
    """
    words = checked_card("save_pretrained", model, data, metrics, license)
    folder = Path(file_name("save_pretrained: save_directory", save_directory))
    write_folder(model, folder, Path(save_directory).as_posix(), **words)


def push_to_hub(
    model: Model,
    repo_id: str,
    data: str | None = None,
    metrics: dict[str, float] | None = None,
    license: str | None = None,
    private: bool | None = None,
    token: str | None = None,
    commit_message: str = "A model",
) -> str:
    """Upload a model to the repository `repo_id`, "name/model", which is made if needed. Returns the commit's address.

    data, metrics and license go onto its card, as in `save_pretrained`. token: if None, the one that `hf auth login`
    stored. Raises ValueError for a model that is not built and for an invalid name, ConnectionError if the hub cannot
    be reached, OSError, naming the cure, if it refuses.
    """
    words = checked_card("push_to_hub", model, data, metrics, license)
    expect(isinstance(repo_id, str), "push_to_hub: repo_id", repo_id, 'a text, "name/model"')
    with hub_request("push_to_hub", repo_id), tempfile.TemporaryDirectory() as folder:
        hub = huggingface_hub.HfApi(token=token)
        place = hub.create_repo(repo_id, private=private, exist_ok=True).repo_id
        write_folder(model, Path(folder), repo_id, **words)
        return hub.upload_folder(repo_id=place, folder_path=folder, commit_message=commit_message)


def from_pretrained(
    repo_id: str | os.PathLike,
    custom_objects: dict[str, Callable] | None = None,
    revision: str | None = None,
    token: str | None = None,
    local_files_only: bool = False,
) -> Model:
    """Load the model in the repository "name/model", or in a folder of `save_pretrained`. No code from there runs.

    custom_objects: classes and functions of your own that it uses, as in `load_model`. local_files_only: use only what
    was downloaded before. Raises FileNotFoundError if there is no model, ConnectionError if the hub cannot be reached,
    ValueError, naming the file, if it is not what `save` made.
    """
    repo_id = os.fspath(repo_id) if isinstance(repo_id, os.PathLike) else repo_id
    expect(isinstance(repo_id, str), "from_pretrained: repo_id", repo_id, 'a text, "name/model", or a folder')
    expect(revision is None or isinstance(revision, str), "from_pretrained: revision", revision, "a text")
    options = {"revision": revision, "token": token, "local_files_only": local_files_only}
    if Path(here := os.path.expanduser(repo_id)).is_dir():
        return load_model(here, custom_objects)
    with hub_request("from_pretrained", repo_id):
        return load_model(Path(huggingface_hub.hf_hub_download(repo_id, WEIGHTS, **options)).parent, custom_objects)
