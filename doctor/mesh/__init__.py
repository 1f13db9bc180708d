"""The mesh: who reaches whom, found out by really connecting.

`plan_mesh` says who should try whom, `mesh_script` and `run_mesh` let agents on the hosts try it over a
session, and `culprits` names the hosts that explain what failed. Only ports that our own agents bound are
connected to.
"""

from doctor.mesh.culprits import Blame, culprits, widen
from doctor.mesh.plan import MeshPlan, pairs_of, plan_mesh
from doctor.mesh.result import Link, Listener, MeshResult, MeshShape, decode, encode
from doctor.mesh.run import MeshPatience, mesh_script, run_mesh

__all__ = [
    "Blame",
    "Link",
    "Listener",
    "MeshPatience",
    "MeshPlan",
    "MeshResult",
    "MeshShape",
    "culprits",
    "decode",
    "encode",
    "mesh_script",
    "pairs_of",
    "plan_mesh",
    "run_mesh",
    "widen",
]
