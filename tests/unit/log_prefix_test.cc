#include "traces/measured/log_prefix.h"

#include <gtest/gtest.h>

namespace bubblescope::tests {
namespace {

struct Case {
  const char* head;
  const char* writer;
};

TEST(LogPrefix, NamesTheWriterAsLaunchersDo) {
  for (const Case& each : {
           Case{"", ""},
           Case{"    ", ""},
           Case{"worker-3:     ", "worker-3:"},                      // pdsh
           Case{"node01.cluster: ", "node01.cluster:"},              //
           Case{"10.0.0.7: ", "10.0.0.7:"},                          //
           Case{"[worker-3]: ", "[worker-3]:"},                      //
           Case{" 3: ", "3:"},                                       // srun -l
           Case{"[default7]:", "[default7]:"},                       // torchrun
           Case{"[1,3]<stdout>:", "[1,3]<stdout>:"},                 // mpirun --tag-output
           Case{"(TaskRunner pid=3456) ", "(TaskRunner pid=3456)"},  // Ray
           Case{"worker-1  | ", "worker-1  |"},                      // docker compose
           Case{"[pod/job-0/train] ", "[pod/job-0/train]"},          // kubectl logs --prefix
           Case{"3: [default7]:", "3: [default7]:"},                 // srun of torchrun
           Case{"2025-03-02T10:11:12.123456789Z ", ""},              // Kubernetes
           Case{"2025-03-02T10:11:12.1+00:00 stdout F ", ""},        // containerd
           Case{"[2025-03-02 10:11:12,123] [INFO] [logging.py:96:log_dist] ", ""},
           Case{"[2024-06-21 10:50:42][INFO][training:1609] -  ", ""},
           Case{"INFO:megatron.core.timers:", ""},
           Case{"[default7]:[2025-03-02 10:11:12,123] INFO ", "[default7]:"},
       }) {
    const traces::LogPrefix prefix = traces::read_prefix(each.head);
    EXPECT_EQ(prefix.writer, each.writer) << each.head;
    EXPECT_TRUE(prefix.is_known) << each.head;
  }
}

TEST(LogPrefix, DoesNotTakeMessagesForNames) {
  for (const char* head : {"Training:  30%|### | 3/10 [00:01<00:02]", "  0%|          | 0/1000 [",
                           "[Rank 0] ", "Traceback (most recent call ", "a b: "}) {
    const traces::LogPrefix prefix = traces::read_prefix(head);
    EXPECT_EQ(prefix.writer, "") << head;
    EXPECT_FALSE(prefix.is_known) << head;
  }
}

// The numbers of an address look like a date, but tell nodes apart.
TEST(LogPrefix, KeepsAddressesWithDashes) {
  EXPECT_EQ(traces::read_prefix("192-168-10-12: ").writer, "192-168-10-12:");
}

TEST(LogPrefix, RemovesColours) {
  EXPECT_EQ(traces::remove_colours("\x1b[36m(A pid=1)\x1b[0m text\x1b[1;31m."), "(A pid=1) text.");
  EXPECT_EQ(traces::remove_colours("a\x1b"), "a");
  EXPECT_EQ(traces::remove_colours("a\x1b["), "a");
}

}  // namespace
}  // namespace bubblescope::tests
