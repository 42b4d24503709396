"""Networks as files of the program (docs/format/network.md), and what training left in one."""
import copy
import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

import numpy as np

from . import _core
from ._arrays import Array
from .learn import safetensors

if TYPE_CHECKING:
    from .net import Layer, Net, Synapse

# Where a kind keeps its arrays, in their order.
_KEYS = {"bilinear": ("weights",), "self": ("weights",), "gram": ("weights",), "bias": ("weights",), "tensor": ("weights",),
         "hidden": ("weights",), "attention": ("query_weights", "key_weights"), "convolution": ("kernels",), "coupling": ()}


def save(net: "Net", path: str, start: Dict[str, Array]) -> None:
    """Writes the network to `path`, .json, and its arrays beside it, .npz."""
    beside = os.path.splitext(path)[0] + ".npz"
    arrays: Dict[str, Any] = {}

    def put(array: Any) -> Dict[str, str]:
        name = f"a{len(arrays)}"
        arrays[name] = array
        return {"file": f"{os.path.basename(beside)}:{name}"}

    layers = [{"name": name, **_layer(name, layer), "init": put(start[name])} for name, layer in net.layers.items()]
    synapses = []
    for name, synapse in net.synapses.items():
        about, values = _synapse(name, synapse, [net.layers[layer].size for layer in synapse.layers])
        for key, value in values.items():
            about[key] = [put(a) for a in value] if isinstance(value, list) else put(value)
        synapses.append(about)
    np.savez(beside, **arrays)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"format": "cgam-net/1", "layers": layers, "synapses": synapses}, file, indent=1)


def _layer(name: str, layer: "Layer") -> Dict[str, Any]:
    if not isinstance(layer.lagrangian, str):
        raise ValueError(f"{name}: a Lagrangian of your own cannot be written to a file")
    given = {**layer.params, **{key: value for key, value in layer.options.items() if value is not None}}
    return {"shape": list(layer.shape), "lagrangian": layer.lagrangian, **given}


def _kind(synapse: "Synapse") -> str:
    folded = synapse.arrays and isinstance(synapse.arrays[0], tuple)
    return "convolution" if folded else synapse.kind


def _synapse(name: str, synapse: "Synapse", sizes: List[int]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """A synapse without its arrays, and its arrays by key."""
    kind = _kind(synapse)
    more: Any = synapse.more
    about: Dict[str, Any] = {"name": name, "kind": kind, "layers": list(synapse.layers), "gain": synapse.gain}
    arrays: Tuple[Any, ...] = synapse.arrays
    if kind == "lowrank":
        rest = arrays[len(sizes):]
        return about, {"factors": list(arrays[:len(sizes)]), **({"weights": rest[0]} if rest else {})}
    if kind not in _KEYS:
        raise ValueError(f"{name}: an energy of your own cannot be written to a file")
    if kind == "convolution":
        kernels, _, _, down, across, same = arrays[0]
        about.update(stride_y=down, stride_x=across, same=bool(same))
        arrays = (kernels,)
    elif kind == "tensor":
        arrays = (arrays[0].reshape(sizes),)
    elif kind == "gram":
        about["zero_diagonal"] = len(arrays) > 1
        if len(arrays) > 1 and not np.allclose(arrays[1], (arrays[0] ** 2).sum(1), rtol=1e-12):
            raise ValueError(f"{name}: a diagonal that is not that of Z Z' cannot be written to a file")
    elif kind == "hidden":
        about.update(_hidden(name, more))
    elif kind == "attention":
        beta, heads, width, exclude = more
        about.update(beta=1.0 if beta is None else beta, exclude_self=bool(exclude))
        if arrays:
            about.update(heads=heads, width=width)
    return about, dict(zip(_KEYS[kind], arrays))


def _hidden(name: str, more: Any) -> Dict[str, Any]:
    lagrangian, values = more
    if not isinstance(lagrangian, str):
        raise ValueError(f"{name}: a Lagrangian of your own cannot be written to a file")
    names = [key for key, _ in _core.lagrangians()[lagrangian][1]]
    return {"lagrangian": lagrangian, **{key: value for key, value in zip(names, values) if not np.isnan(value)}}


def trained(net: "Net", path: str) -> "Net":
    """The network with the numbers of the file that training wrote, which was made from one of `save`."""
    from .net import Net, _params

    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    files: Dict[str, Dict[str, Any]] = {}

    def get(value: Any, old: Any) -> Any:
        name, _, member = value["file"].rpartition(":")
        if name.endswith(".npz"):
            return old  # not learned
        if name not in files:
            with open(os.path.join(os.path.dirname(path), name), "rb") as beside:
                files[name] = safetensors(beside.read())
        return files[name][member].astype(np.float64).reshape(old.shape)

    layers: Dict[str, Any] = {}
    synapses: Dict[str, Any] = {}
    for about in document["layers"]:
        layer: Any = copy.copy(net.layers[about["name"]])
        layers[about["name"]] = layer
        names = [key for key, _ in _core.lagrangians()[layer.lagrangian][1]]
        layer.params = {key: about[key] for key in names if key in about}
        layer.options = {key: about.get(key) for key in layer.options}
    for about in document["synapses"]:
        old: Any = net.synapses[about["name"]]
        new: Any = copy.copy(old)
        synapses[about["name"]] = new
        new.gain, kind = about.get("gain", 1.0), _kind(old)
        if kind == "convolution":
            new.arrays = ((get(about["kernels"], old.arrays[0][0]), *old.arrays[0][1:]),)
        else:
            values = ([*about["factors"], *([about["weights"]] if "weights" in about else [])] if kind == "lowrank" else
                      [about[key] for key in _KEYS[kind] if key in about])
            new.arrays = tuple(get(value, a) for value, a in zip(values, old.arrays)) + old.arrays[len(values):]
        if kind == "gram" and len(old.arrays) > 1:
            new.arrays = (new.arrays[0], (new.arrays[0] ** 2).sum(1))
        elif kind == "tensor":
            new.T = new.arrays[0].reshape(old.T.shape)
        elif kind == "bias":
            new.bias = new.arrays[0].reshape(old.bias.shape)
        elif kind == "hidden":
            names = [key for key, _ in _core.lagrangians()[about["lagrangian"]][1]]
            new.more = _params(about["lagrangian"], {key: about[key] for key in names if key in about})
        elif kind == "attention":
            new.more = (about["beta"], *old.more[1:])
    return Net(layers, synapses)
