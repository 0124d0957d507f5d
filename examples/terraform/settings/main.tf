# A parameter for each setting of the rack. Removing one from the map gives the setting its default again.

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
  settings = {
    karpenter_cpu_limit   = "120"
    karpenter_node_labels = "team=core"
    additional_karpenter_nodepools_config = jsonencode([
      { name = "batch", capacity_types = "spot", dedicated = true },
    ])
  }
}

resource "aws_ssm_parameter" "setting" {
  for_each = local.settings

  name  = "/sawhorse/racks/${local.rack}/params/${each.key}"
  type  = "String"
  value = each.value
}
