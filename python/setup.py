"""Packs the wheel from what CMake has built: `make python` calls it.

The extension uses the stable ABI of CPython 3.11 only, so the wheel serves every later one. The tag
linux_<machine> says that the shared libraries the module stands on (jansson, libzip, libb2, SQLite, libsodium,
liblbfgs, SUNDIALS, OpenBLAS, LAPACKE) come from the system; tools/deps installs them.
"""
import os
import pathlib

from setuptools import setup
from setuptools.dist import Distribution

build = pathlib.Path(os.environ["CGAM_BUILD"]) / "python"


class Binary(Distribution):
    """Without sources to compile, and yet not for every machine."""

    def has_ext_modules(self):
        return True


setup(
    name="cgam",
    version=(build / "version.txt").read_text().strip(),
    description="Context-gated associative memory",
    license="Apache-2.0",
    python_requires=">=3.11",
    install_requires=["numpy"],
    package_dir={"": str(build)},
    packages=["cgam"],
    package_data={"cgam": ["*.so*", "py.typed", "*.pyi"]},
    zip_safe=False,
    distclass=Binary,
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
