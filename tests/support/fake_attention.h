// The attention kernels, computed by exec/training in float32.
#pragma once

#include "exec/gpu/kernels.h"

namespace bubblescope::tests {

void attend_on_host(const exec::AttentionArguments& arguments);
void add_query_grad_on_host(const exec::QueryGradArguments& arguments);
void add_key_grad_on_host(const exec::KeyGradArguments& arguments);

}  // namespace bubblescope::tests
