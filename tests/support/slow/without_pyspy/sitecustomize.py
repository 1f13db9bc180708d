"""On PYTHONPATH, it makes Python find no py-spy beside doctor."""

import importlib.metadata
import sysconfig

_files, _path = importlib.metadata.files, sysconfig.get_path
for module, name, instead in (
    (importlib.metadata, "files", lambda name: None if name == "py-spy" else _files(name)),
    (sysconfig, "get_path", lambda name, *rest: "/nowhere" if name == "scripts" else _path(name, *rest)),
):
    setattr(module, name, instead)
