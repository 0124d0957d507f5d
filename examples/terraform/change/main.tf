# All settings as one change: judged as a whole, and in force as a whole. Terraform sees whether it was written;
# `sawhorse status demo` says whether it was taken.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

locals {
  rack = "demo"
  change = {
    set   = { karpenter_cpu_limit = "140", karpenter_node_labels = "team=data" }
    unset = ["additional_karpenter_nodepools_config"]
    note  = "the data team moves in"
  }
}

resource "aws_ssm_parameter" "change" {
  name  = "/sawhorse/racks/${local.rack}/change"
  type  = "String"
  value = jsonencode(local.change)
}
