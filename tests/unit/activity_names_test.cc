// Tests what the names of activities say.
#include "traces/measured/activity_names.h"

#include <gtest/gtest.h>

namespace bubblescope::tests {
namespace {

TEST(ActivityNames, OfMessagesAndWaitingHaveTheirWordsInAnySpelling) {
  for (const char* name :
       {"recv_forward", "forwardRecv", "batch_isend_irecv", "cudaStreamSynchronize", "NCCLSend",
        "MPI_Isend", "ncclDevKernel_SendRecv(ncclDevKernelArgs)", "grad sync", "waiting", "stalls",
        "pp-comm", "Memcpy HtoD", "P2POp", "exchange3"})
    EXPECT_TRUE(traces::is_message_or_waiting(name)) << name;
}

// Letters within other words say nothing.
TEST(ActivityNames, OfOtherWorkMayContainTheLettersOfSuchWords) {
  for (const char* name : {"compute_common_layer", "async_gemm", "install hooks", "ascend_matmul",
                           "recommend", "awaited_gemm", "computeCommonLayer"})
    EXPECT_FALSE(traces::is_message_or_waiting(name)) << name;
  for (const char* name : {"optimal_transport", "optimized_attention", "madam", "adamant"})
    EXPECT_FALSE(traces::is_outer_activity(name)) << name;
}

TEST(ActivityNames, OfWorkAroundOpsHaveTheirWordsInAnySpelling) {
  for (const char* name :
       {"Optimizer.step#AdamW.step", "optim", "optimizer", "FusedAdam", "zero_grad",
        "clip_grad_norm_", "clip_gradients", "optimizer-clip-main-grad", "grads-reduce-scatter"})
    EXPECT_TRUE(traces::is_outer_activity(name)) << name;
  for (const char* name : {"get_batch", "getBatch", "batch-generator", "next batches",
                           "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
                           "load_data", "data loader"})
    EXPECT_TRUE(traces::is_loading_data(name)) << name;
  EXPECT_FALSE(traces::is_loading_data("batch_gemm"));
}

}  // namespace
}  // namespace bubblescope::tests
