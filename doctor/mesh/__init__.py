"""The mesh: find out which hosts reach each other by connecting them.

`plan_mesh` decides which hosts connect to which, `mesh_script` and `run_mesh` let agents on the hosts do it,
`culprits` names the hosts that explain the failures; `unproved` and `not_carried` name the hosts not tried
enough. Agents connect only to ports that our agents bound.
"""

from doctor.mesh.culprits import MeshBlame, culprits
from doctor.mesh.plan import MeshPlan, pairs_of, plan_mesh
from doctor.mesh.proof import not_carried, unproved
from doctor.mesh.result import Link, Listener, MeshResult, MeshShape
from doctor.mesh.run import MeshPatience, mesh_script, run_mesh

__all__ = [
    "Link",
    "Listener",
    "MeshBlame",
    "MeshPatience",
    "MeshPlan",
    "MeshResult",
    "MeshShape",
    "culprits",
    "mesh_script",
    "not_carried",
    "pairs_of",
    "plan_mesh",
    "run_mesh",
    "unproved",
]
