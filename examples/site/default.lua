-- /opt/modulefiles/cluster-doctor/default.lua, for an installation in /opt/cluster-doctor
-- Tried: loaded and unloaded by Lmod 8.6.
help([[Which host, device, port or rank is at fault: doctor --help]])
whatis("Examines a training cluster: which host, device, port or rank is at fault")
prepend_path("PATH", "/opt/cluster-doctor/bin")
