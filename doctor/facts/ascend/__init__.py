"""What is known of Ascend devices, from npu-smi and hccn_tool."""
