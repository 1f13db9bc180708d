"""Facts about Ascend devices, from npu-smi and hccn_tool."""
