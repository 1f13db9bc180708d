"""The mesh: find out which hosts reach each other by connecting them.

`plan_mesh` decides which hosts connect to which, `culprits` names the hosts that explain the failures;
`unproved` names the hosts not tried enough. The module `run`, imported only to make a mesh, lets agents on
the hosts do it; they connect only to ports that our agents bound.
"""

from doctor.mesh.culprits import MeshBlame, culprits
from doctor.mesh.plan import MeshPlan, pairs_of, plan_mesh
from doctor.mesh.proof import unproved
from doctor.mesh.result import Link, Listener, MeshResult, MeshShape
