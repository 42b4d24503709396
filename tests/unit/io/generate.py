#!/usr/bin/python3
"""Makes the files in data/ that the tests of the readers open, with NumPy as the judge.

    /usr/bin/python3 generate.py

Every matrix is 3 x 4 with a[i, j] = (4 i + j - 5.5) / 8, which each float type holds exactly;
integers are 4 i + j - 5. The cube is 2 x 3 x 4, counted 0 .. 23. The tests know these formulas.
"""
import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np

data = Path(__file__).parent / "data"
data.mkdir(exist_ok=True)

count = np.arange(12).reshape(3, 4)
real = (count - 5.5) / 8
whole = count - 5
cube = np.arange(24.0).reshape(2, 3, 4)


def write_npy(name, array, version=(1, 0), pickle=False):
    with open(data / name, "wb") as f:
        np.lib.format.write_array(f, array, version=version, allow_pickle=pickle)


for kind in ("f8", "f4", "f2"):
    write_npy(f"{kind}.npy", real.astype(f"<{kind}"))
for kind in ("i8", "i4"):
    write_npy(f"{kind}.npy", whole.astype(f"<{kind}"))
write_npy("version2.npy", real.astype("<f4"), version=(2, 0))
write_npy("version3.npy", real.astype("<f4"), version=(3, 0))
write_npy("fortran.npy", np.asfortranarray(real.astype("<f4")))
write_npy("fortran_cube.npy", np.asfortranarray(cube))
write_npy("vector.npy", real[0])
write_npy("scalar.npy", np.array(2.5))
write_npy("empty.npy", np.zeros((0, 4)))
write_npy("big_endian.npy", real.astype(">f4"))
write_npy("complex.npy", real.astype("<c16"))
write_npy("object.npy", np.array([None, 1], dtype=object), pickle=True)
write_npy("structured.npy", np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4", (2,))]))

np.savez(data / "stored.npz", a=real, b=whole.astype("<i4"), flags=count > 5)
np.savez_compressed(data / "deflated.npz", a=real, f=np.asfortranarray(cube), big=np.zeros((99, 99)))
np.savez(data / "one.npz", real.astype("<f4"))

# An entry that is no array, a long header, one that is cut, Fortran order of one row, more than is read at once.
with zipfile.ZipFile(data / "mixed.npz", "w", zipfile.ZIP_DEFLATED) as archive:
    parts = {"readme.txt": b"text"}
    for name, array, version in (("a", real, (2, 0)), ("flat", np.ones((1, 4), order="F"), (1, 0)), ("large", np.zeros(600000), (1, 0))):
        member = io.BytesIO()
        np.lib.format.write_array(member, array, version=version)
        parts[name + ".npy"] = member.getvalue()
    parts["flat.npy"] = parts["flat.npy"].replace(b"'fortran_order': False", b"'fortran_order': True ")
    parts["cut.npy"], parts["cut2.npy"] = parts["flat.npy"][:40], parts["a.npy"][:11]
    parts["none.npy"] = b"\x93NUMP"
    for name, content in parts.items():
        archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)

# Deflated members whose array header and directory agree, while the stream holds 16 bytes less or
# more: the sizes in both zip headers are written over.
for name, shape in (("short.npz", (13,)), ("long.npz", (9,))):
    member = io.BytesIO()
    np.save(member, np.arange(11.0))
    content = member.getvalue().replace(b"(11,)", b"(%d,)" % shape).replace(b"(9,)", b"(9,) ")
    with zipfile.ZipFile(data / name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("a.npy"), content, zipfile.ZIP_DEFLATED)
    lying = (data / name).read_bytes().replace(
        struct.pack("<L", 128 + 88), struct.pack("<L", 128 + 8 * shape[0]))
    (data / name).write_bytes(lying)

# .safetensors from the format's description: BF16 is the upper half of F32.
bf16 = (real.astype("<f4").view("<u4") >> 16).astype("<u2")
tensors = {
    "f64": ("F64", real.astype("<f8")),
    "f32": ("F32", real.astype("<f4")),
    "f16": ("F16", real.astype("<f2")),
    "bf16": ("BF16", bf16),
    "i64": ("I64", whole.astype("<i8")),
    "i32": ("I32", whole.astype("<i4")),
    "u8": ("U8", count.astype("u1")),
}
header, body = {"__metadata__": {"made by": "generate.py"}}, b""
for name, (dtype, array) in tensors.items():
    begin, body = len(body), body + array.tobytes()
    header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, len(body)]}
text = json.dumps(header).encode()
(data / "all.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
