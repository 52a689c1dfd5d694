"""The build back end of pyproject.toml: meson-python's, which has no hook for metadata. pip would build the whole package in
the step that it calls "Preparing metadata", before it says that it builds."""
import pathlib
import re
import tomllib

import pyproject_metadata
from mesonpy import (build_editable, build_sdist, build_wheel, get_requires_for_build_editable,  # noqa: F401
                     get_requires_for_build_sdist, get_requires_for_build_wheel)

ROOT = pathlib.Path(__file__).parent.parent.parent


def version():
    """The version of meson.build."""
    return re.search(r"^project\([^)]*\bversion: '([^']+)'", (ROOT / "meson.build").read_text(), re.M | re.S).group(1)


def prepare_metadata_for_build_wheel(folder, config_settings=None):
    """Writes what the wheel's .dist-info will say into a new folder in `folder`, and returns its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project["project"]["dynamic"].remove("version")
    project["project"]["version"] = version()
    metadata = pyproject_metadata.StandardMetadata.from_pyproject(project, ROOT)
    info = pathlib.Path(folder) / f"{metadata.name.replace('-', '_')}-{metadata.version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_bytes(bytes(metadata.as_rfc822()))
    groups = dict(metadata.entrypoints, console_scripts=metadata.scripts)
    (info / "entry_points.txt").write_text("\n".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items()) for group, entries in groups.items()))
    return info.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel
