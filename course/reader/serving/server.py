"""The server process: KServe's server for ONNX models, run in the environment of `course serve`.

    python server.py FOLDER HOST PORT      serve FOLDER/NAME.onnx as the model NAME, until standard input is closed

KServe implements the protocol. This module adds a model class (onnxruntime), the validation of requests, and error
messages of one sentence. A request that cannot be answered gets a status from 400 to 499. Protocol:
https://github.com/kserve/open-inference-protocol
"""

import asyncio
import logging
import re
import signal
import sys
import threading
import time
import uuid
from pathlib import Path

import kserve
import numpy as np
import onnxruntime
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from kserve.constants.constants import FASTAPI_APP_IMPORT_STRING
from kserve.errors import InvalidInput, ModelNotFound
from kserve.model_repository import ModelRepository
from kserve.model_server import app
from kserve.protocol.dataplane import DataPlane
from kserve.protocol.model_repository_extension import ModelRepositoryExtension
from kserve.protocol.rest.server import RESTServer
from kserve.protocol.rest.v2_datamodels import InferenceRequest
from pydantic import ValidationError
from starlette.exceptions import HTTPException

LARGEST = 16_000_000  # the maximum bytes of a request
ENDURED = 10 * LARGEST  # bytes read of a larger request before the connection is closed
KINDS = {  # type in ONNX: (type in the protocol, NumPy dtype, types of its JSON values)
    "tensor(float)": ("FP32", np.float32, {int, float}),
    "tensor(double)": ("FP64", np.float64, {int, float}),
    "tensor(int64)": ("INT64", np.int64, {int}),
    "tensor(int32)": ("INT32", np.int32, {int}),
    "tensor(bool)": ("BOOL", np.bool_, {bool}),
}
# a model's path: its name, perhaps its version, and the rest; or the request to load the new version of its file
ADDRESS = re.compile(r"/v2/(?:repository/)?models/([^/]+)(?:/versions/([^/]*))?(/infer|/ready|/load|/?)")


class OnnxModel(kserve.Model):
    """One model. `load` loads the current file as the next version; until then, the old version answers."""

    def __init__(self, file):
        super().__init__(file.stem)
        self.file = file
        self.version = 0
        self.session = None
        self.held = None
        self.load()

    def load(self):
        """Load the file if its content has changed. Raises ValueError for a tensor type that is not in KINDS."""
        data = self.file.read_bytes()
        if data == self.held:  # any client may request a load
            return True
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # for a few rows, several threads are slower than one
        session = onnxruntime.InferenceSession(data, options)
        unknown = {tensor.type for tensor in (*session.get_inputs(), *session.get_outputs())} - KINDS.keys()
        if unknown:
            raise ValueError(f"{self.name} takes or gives {', '.join(sorted(unknown))}; served are {', '.join(KINDS)}")
        self.session = session
        self.held = data
        self.version = self.version + 1
        self.ready = True
        return True

    def told(self, tensors):
        return [{"name": t.name, "datatype": KINDS[t.type][0], "shape": shape_of(t)} for t in tensors]

    def get_input_types(self):
        return self.told(self.session.get_inputs())

    def get_output_types(self):
        return self.told(self.session.get_outputs())

    def predict(self, payload, headers=None, response_headers=None):
        # a new version may be loaded at any moment
        session = self.session
        version = self.version
        wanted = {tensor.name: tensor for tensor in session.get_inputs()}
        given = [tensor.name for tensor in payload.inputs]
        if sorted(given) != sorted(wanted):
            told = f"the inputs are {', '.join(wanted)}; given are {', '.join(given) or 'none'}"
            raise InvalidInput(f"{self.name}: {told}")
        arrays = {tensor.name: array_of(tensor, wanted[tensor.name]) for tensor in payload.inputs}
        rows = {}  # {the graph's name of the first axis: {input: length}}
        for name, array in arrays.items():
            if array.ndim and isinstance(wanted[name].shape[0], str):
                rows.setdefault(wanted[name].shape[0], {})[name] = len(array)
        for found in rows.values():
            if len({*found.values()}) > 1:
                told = ", ".join(f"{name} has {number}" for name, number in found.items())
                raise InvalidInput(f"{self.name}: all inputs need as many rows; {told}")
        try:
            results = session.run(None, arrays)
        except Exception as error:  # an error for values of the right type and shape, such as an index
            raise InvalidInput(f"{self.name} cannot be run on this: {str(error).splitlines()[0][:300]}") from error
        return kserve.InferResponse(
            payload.id or str(uuid.uuid4()),  # without an ID, KServe answers 500
            self.name,
            [self.output(*each) for each in zip(session.get_outputs(), results, strict=True)],
            model_version=str(version),
            requested_outputs=payload.request_outputs,
            use_binary_outputs=payload.use_binary_outputs,
        )

    def output(self, tensor, array):
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InvalidInput(f"{self.name}: {tensor.name} holds NaN or infinity, which JSON cannot express")
        return kserve.InferOutput(tensor.name, list(array.shape), KINDS[tensor.type][0], array)


def shape_of(tensor):
    return [size if isinstance(size, int) else -1 for size in tensor.shape]


def array_of(given, wanted):
    """Return the array of a tensor in a request. Raises InvalidInput if its type, shape or numbers are wrong."""
    datatype, dtype, kinds = KINDS[wanted.type]
    shape = shape_of(wanted)
    fits = len(given.shape) == len(shape) and all(a == b or b == -1 for a, b in zip(given.shape, shape, strict=True))
    if given.datatype != datatype or not fits or min(given.shape, default=0) < 0:
        found = f"{given.datatype[:20]} {str(given.shape)[:100]}"
        raise InvalidInput(f"{given.name} is {found}; expected {datatype} {shape}, where -1 is any number of rows")
    # As objects: by default, NumPy would convert true beside 3.5 to 1.0, and keep 10**20 as an object.
    data = np.array(given.data, object)
    found = {*map(type, data.ravel())}
    if list in found:
        raise InvalidInput(f"{given.name}: data is not a table: its lists have different lengths")
    if found - kinds:
        raise InvalidInput(f"{given.name}: data is not numbers of the kind {datatype}")
    if data.shape not in (tuple(given.shape), (int(np.prod(given.shape, dtype=object)),)):
        told = f"data has the shape {list(data.shape)}; expected {given.shape}, or all in a row"
        raise InvalidInput(f"{given.name}: {told}")
    data = data.reshape(given.shape)
    try:
        with np.errstate(over="ignore"):
            array = data.astype(dtype)
        lost = not np.isfinite(array).all() or (kinds == {int} and (array != data).any())
    except OverflowError:
        lost = True
    if lost:
        raise InvalidInput(f"{given.name}: data holds a number that does not fit into {datatype}")
    return array


class Models(ModelRepository):
    """The models by name. `load` loads the new version of a model's file."""

    def load(self, name):
        self.models[name].load()


class Plane(DataPlane):
    """KServe's data plane, with model versions, and with an error message for each request that cannot be read."""

    def decode(self, body, headers, protocol_version="v1", model_name=None):
        if protocol_version.lower() != "v2":
            raise InvalidInput("this server speaks version 2 of the protocol: POST /v2/models/NAME/infer")
        if isinstance(body, bytes) and "inference-header-content-length" not in headers:
            raise InvalidInput("the body is JSON, and its header must say so: Content-Type: application/json")
        try:
            request, attributes = super().decode(body, headers, protocol_version, model_name)
            if isinstance(body, bytes):  # numbers as bytes: KServe does not validate such a request
                form = InferenceRequest.model_validate(request.to_rest()[0])
                request = request.from_inference_request(form, model_name)
            tensors = (*request.inputs, *(request.request_outputs or ()))
            texts = [request.id or "", *(getattr(t, key, "") for t in tensors for key in ("name", "datatype"))]
            "".join(texts).encode()  # JSON may contain a lone surrogate, which no answer can
            return request, attributes
        except InvalidInput:
            raise
        except ValidationError as error:
            raise InvalidInput(read(error)) from error
        except Exception as error:  # a header or a part of the body violates the protocol
            raise InvalidInput(f"the request cannot be read: {type(error).__name__}: {str(error)[:200]}") from error

    async def model_metadata(self, model_name):
        told = await super().model_metadata(model_name)
        versions = [str(self.get_model_from_registry(model_name).version)]
        return told | {"platform": "onnx_onnxruntimev1", "versions": versions}


class Door:
    """Middleware for all requests: it limits the body's size, and maps /versions/N to the model if N is its version."""

    def __init__(self, app, models):
        self.app = app
        self.models = models

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if found := ADDRESS.fullmatch(scope["path"]):
            name, version, rest = found.groups()
            if name not in self.models.models:
                told = f"there is no model {name[:80]}; there are {', '.join(sorted(self.models.models))}"
                return await refuse(404, told)(scope, receive, send)
            now = str(self.models.models[name].version)
            if version not in (None, now):
                return await refuse(404, f"{name} has the version {now}, and no other")(scope, receive, send)
            if version:
                scope = scope | {"path": f"/v2/models/{name}{rest}"}
        elif scope["path"].startswith("/v2/repository"):
            sentence = "this server serves only the models that it was started with"
            return await refuse(403, sentence)(scope, receive, send)
        taken = 0
        parts = []
        while True:  # counted while reading, because the header may be wrong
            part = await receive()
            if part["type"] != "http.request":
                return None  # disconnected
            taken += len(part.get("body", b""))
            if taken <= LARGEST:
                parts.append(part.get("body", b""))
            else:  # read to its end and dropped: a client that still writes would not read an answer
                parts.clear()
            if not part.get("more_body") or taken > ENDURED:
                break
        if taken > LARGEST:
            sentence = f"a request may have {LARGEST:,} bytes; send fewer rows at a time"
            return await refuse(413, sentence)(scope, receive, send)
        waiting = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def again():
            return waiting.pop() if waiting else await receive()

        return await self.app(scope, again, send)


def refuse(status, sentence):
    return JSONResponse({"error": sentence}, status)


def read(error):
    """Return what is wrong with a body, in a sentence."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"the body is not JSON, from character {first['loc'][-1]} on"
    # Of the two forms that KServe accepts, JSON and bytes, report the errors as JSON.
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "InferenceRequest", "bytes"))
    return f"the request is not as the protocol says: {place or 'body'}: {first['msg']}"


def expected(record):
    """Return whether a record belongs in the log. Errors in a request do not: the client gets them."""
    return not (record.exc_info and isinstance(record.exc_info[1], (InvalidInput, ModelNotFound)))


def main(folder, host, port):
    models = Models()
    for file in sorted(Path(folder).glob("*.onnx")):
        try:
            models.update(OnnxModel(file))
        except Exception as error:  # onnxruntime's error for an op or a type that it does not support
            sys.exit(str(error))
    for name in ("kserve", "kserve.trace"):
        logging.getLogger(name).addFilter(expected)
    app.add_middleware(Door, models=models)

    async def invalid(request, error):
        return refuse(400, read(error))

    async def unknown(request, error):
        if error.status_code == 400:
            told = "check its encoding, its depth and the length of its numbers"
            return refuse(400, f"the body cannot be read as JSON: {told}")
        there = f"there are {', '.join(sorted(models.models))} under /v2/models/NAME"
        sentence = f"{request.method} {request.url.path[:200]}: {error.detail}; {there}"
        return refuse(error.status_code, sentence)

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, unknown)
    rest = RESTServer(FASTAPI_APP_IMPORT_STRING, Plane(models), ModelRepositoryExtension(models), port, grace_period=10)
    rest.config.host = host  # by default, KServe listens at all addresses, as in a container
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn shuts down, then raises the signal again
        signal.signal(number, lambda *_: None)

    def end_with_parent():
        sys.stdin.buffer.read()
        while True:  # repeatedly, because the server may not handle signals yet
            signal.raise_signal(signal.SIGTERM)
            time.sleep(0.1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    asyncio.run(rest.start())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
