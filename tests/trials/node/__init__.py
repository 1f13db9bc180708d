"""Many runs of `doctor check --exam node` on sound hosts of the lab, whatever runs there."""
