// The variables of launchers, and the choice of devices.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "exec/nccl/choose_device.h"
#include "exec/nccl/launch.h"
#include "exec/nccl/nccl.h"
#include "sim/ir/error.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

using Variables = std::map<std::string, std::string>;

exec::Launch read(const Variables& variables) {
  return exec::read_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const Variables& variables) {
  return error_of([&] { read(variables); });
}

TEST(NcclLaunch, WithoutALauncherAProcessIsAlone) {
  const exec::Launch launch = read({});
  EXPECT_EQ(launch.launcher, "");
  EXPECT_EQ(launch.rank_info.count, 1);
  EXPECT_FALSE(launch.rendezvous);
}

TEST(NcclLaunch, TorchrunSaysAllAndItsOwnStoreKeepsItsPort) {
  Variables variables{{"RANK", "3"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_RANK", "1"},
                      {"MASTER_ADDR", "node7"},
                      {"MASTER_PORT", "29511"}};
  const exec::Launch launch = read(variables);
  EXPECT_EQ(launch.launcher, "torchrun");
  EXPECT_EQ(launch.rank_info.rank, 3);
  EXPECT_EQ(launch.rank_info.count, 8);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.rendezvous, (exec::Address{"node7", 29511}));
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(read(variables).rendezvous, (exec::Address{"node7", 29512}));
}

TEST(NcclLaunch, SrunNamesTheFirstHostAndAPortOfItsJob) {
  const exec::Launch launch = read({{"SLURM_PROCID", "5"},
                                    {"SLURM_STEP_NUM_TASKS", "16"},
                                    {"SLURM_LOCALID", "5"},
                                    {"SLURM_JOB_ID", "4211"},
                                    {"SLURM_STEP_ID", "2"},
                                    {"SLURM_STEP_NODELIST", "gpu[07-09,12],login1"}});
  EXPECT_EQ(launch.launcher, "srun");
  EXPECT_EQ(launch.rank_info.rank, 5);
  EXPECT_EQ(launch.local_rank, 5);
  EXPECT_EQ(launch.rendezvous, (exec::Address{"gpu07", 16000 + 4211 + 2 * 17}));
}

TEST(NcclLaunch, ABatchScriptOfSlurmIsAlone) {
  Variables variables{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "4211"}};
  EXPECT_EQ(read(variables).rank_info.count, 1);
  variables["OMPI_COMM_WORLD_RANK"] = "1";  // mpirun within a batch script
  variables["OMPI_COMM_WORLD_SIZE"] = "2";
  EXPECT_EQ(read(variables).launcher, "mpirun");
}

TEST(NcclLaunch, MpirunNeedsNoAddressBecauseMpiKnowsIt) {
  const exec::Launch open_mpi = read({{"OMPI_COMM_WORLD_RANK", "1"},
                                      {"OMPI_COMM_WORLD_SIZE", "2"},
                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  EXPECT_EQ(open_mpi.launcher, "mpirun");
  EXPECT_EQ(open_mpi.local_rank, 0);
  EXPECT_FALSE(open_mpi.rendezvous);
  const exec::Launch pmi = read({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  EXPECT_EQ(pmi.rank_info.rank, 1);
  EXPECT_FALSE(pmi.local_rank);
}

TEST(NcclLaunch, TheRendezvousAddressCanBeGiven) {
  Variables variables{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"NCCL_COMM_ID", "[::1]:7000"}};
  EXPECT_EQ(read(variables).rendezvous, (exec::Address{"::1", 7001}));  // NCCL itself uses 7000
  variables["MASTER_ADDR"] = "a";
  EXPECT_EQ(read(variables).rendezvous, (exec::Address{"a", 29500}));
  variables["BUBBLESCOPE_RENDEZVOUS"] = "b:1234";
  EXPECT_EQ(read(variables).rendezvous, (exec::Address{"b", 1234}));
}

TEST(NcclLaunch, OnOneHostTheRendezvousIsAtTheLoopbackInterface) {
  Variables torchrun{{"RANK", "0"},
                     {"WORLD_SIZE", "4"},
                     {"LOCAL_WORLD_SIZE", "4"},
                     {"MASTER_ADDR", "node7"},
                     {"MASTER_PORT", "29511"}};
  EXPECT_EQ(read(torchrun).rendezvous, (exec::Address{"127.0.0.1", 29511}));
  torchrun["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_EQ(read(torchrun).rendezvous, (exec::Address{"node7", 29511}));
  torchrun["LOCAL_WORLD_SIZE"] = "4";
  torchrun["BUBBLESCOPE_RENDEZVOUS"] = "node7:7000";
  EXPECT_EQ(read(torchrun).rendezvous, (exec::Address{"node7", 7000}));
  Variables srun{{"SLURM_PROCID", "1"},
                 {"SLURM_STEP_NUM_TASKS", "2"},
                 {"SLURM_JOB_ID", "4211"},
                 {"SLURM_STEP_NUM_NODES", "1"},
                 {"SLURM_NODELIST", "gpu07"}};
  EXPECT_EQ(read(srun).rendezvous, (exec::Address{"127.0.0.1", 16000 + 4211}));
  srun["SLURM_STEP_NUM_NODES"] = "2";
  EXPECT_EQ(read(srun).rendezvous, (exec::Address{"gpu07", 16000 + 4211}));
  srun["BUBBLESCOPE_INTERFACE"] = "eth0";
  EXPECT_EQ(read(srun).interface_name, "eth0");
}

TEST(NcclLaunch, OnlyAtTheLoopbackInterfaceTheRendezvousIsLocal) {
  Variables variables{{"RANK", "0"},
                      {"WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "localhost"},
                      {"BUBBLESCOPE_SECRET_FILE", "/run/secret"}};
  EXPECT_TRUE(read(variables).is_local());
  EXPECT_EQ(read(variables).secret.file, "/run/secret");
  variables["BUBBLESCOPE_INTERFACE"] = "all";
  EXPECT_FALSE(read(variables).is_local());
  EXPECT_FALSE(read({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node1"}}).is_local());
}

TEST(NcclLaunch, RefusesWhatCannotBe) {
  EXPECT_EQ(
      refusal({{"RANK", "two"}, {"WORLD_SIZE", "4"}}),
      "the backend nccl: RANK='two' is not a number from 0 to 65536; let a launcher set it, or "
      "unset it");
  EXPECT_EQ(
      refusal({{"RANK", "4"}, {"WORLD_SIZE", "4"}}),
      "the backend nccl: RANK=4 of WORLD_SIZE=4 processes is impossible; correct one of them, "
      "ranks begin at 0");
  EXPECT_NE(refusal({{"RANK", "1"}}).find("RANK is set and WORLD_SIZE is not"), std::string::npos);
  EXPECT_NE(refusal({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).find("set MASTER_ADDR"),
            std::string::npos);
  EXPECT_NE(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"BUBBLESCOPE_RENDEZVOUS", "host"}})
                .find("'host' is not an address; write host:port"),
            std::string::npos);
  EXPECT_NE(refusal({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}).find("RANK='-1' is not a number"),
            std::string::npos);
  EXPECT_NE(
      refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}})
          .find("MASTER_PORT='70000' is not a number"),
      std::string::npos);
}

TEST(NcclLaunch, ReadsSlurmsListsOfHosts) {
  EXPECT_EQ(exec::first_host("a"), "a");
  EXPECT_EQ(exec::first_host("a,b[1-2]"), "a");
  EXPECT_EQ(exec::first_host("n[001-128]"), "n001");
  EXPECT_EQ(exec::first_host("n[7,9]-ib,m"), "n7-ib");
  EXPECT_EQ(exec::first_host("n[3"), "n[3");
  EXPECT_EQ(exec::first_host(""), "");
}

TEST(NcclModule, ThatIsMissingSaysWhatToInstall) {
  try {
    exec::open_nccl("/nowhere/bubblescope_nccl.so");
    FAIL() << "there is no such module";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::kMachine);
    EXPECT_EQ(
        std::string(error.what())
            .find("the backend nccl needs /nowhere/bubblescope_nccl.so, which does not exist: "
                  "install NCCL and the CUDA toolkit"),
        0u);
  }
}

TEST(NcclDevices, GoToProcessesInTheirOrderOnAHost) {
  const std::vector<exec::HostInfo> all{{"a", "", "", ""}, {"b", "", "", ""}, {"a", "", "", ""}};
  EXPECT_EQ(exec::count_lower_on_host(all, 2), 1);
  EXPECT_EQ(exec::count_lower_on_host(all, 1), 0);
  EXPECT_EQ(exec::choose_device(1, 4, false), 1);
  EXPECT_EQ(exec::choose_device(3, 1, false),
            0);  // only one is visible, so it is this process's own
  EXPECT_EQ(exec::choose_device(5, 4, true), 1);
  EXPECT_EQ(error_of([&] { exec::choose_device(0, 0, false); }),
            "it has no visible CUDA device; see nvidia-smi and CUDA_VISIBLE_DEVICES");
  try {
    exec::choose_device(4, 4, false);
    FAIL() << "there is no fifth device";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::kMachine);
    EXPECT_EQ(std::string(error.what()),
              "it is process 5 of its host, which has 4 devices; start fewer processes per host");
  }
}

TEST(NcclLaunch, AnImplicitLaunchOrderIsTold) {
  const auto describe = [](const char* value) {
    return exec::describe_launch_order([value](const char* name) {
      return std::string(name) == "NCCL_LAUNCH_ORDER_IMPLICIT" ? value : nullptr;
    });
  };
  EXPECT_EQ(describe(nullptr), "");
  EXPECT_EQ(describe("0"), "");
  EXPECT_EQ(describe("1"),
            "NCCL launches the transfers of all links in the order in which they are enqueued "
            "(NCCL_LAUNCH_ORDER_IMPLICIT=1), so links wait for each other");
}

TEST(NcclDevices, ARankThatCannotTakePartIsNamedAndSoAreTwoOnOneDevice) {
  std::vector<exec::HostInfo> all{{"a", "", "0000:01:00.0", ""}, {"a", "", "0000:02:00.0", ""}};
  EXPECT_EQ(exec::find_obstacle(all, 0), std::nullopt);
  all[1].device = all[0].device;
  EXPECT_EQ(
      exec::find_obstacle(all, 0)->find("the backend nccl: rank 0 and rank 1 share the device "
                                        "0000:01:00.0 of a; NCCL needs one per process"),
      0u);
  all[0].host_id = "one";
  all[1].host_id = "two";
  EXPECT_EQ(exec::find_obstacle(all, 0), std::nullopt);
  all[1].host_id = "one";
  EXPECT_TRUE(exec::find_obstacle(all, 0));
  all[1].problem = "no driver";
  EXPECT_EQ(exec::find_obstacle(all, 0),
            "the backend nccl: rank 1 (on a) cannot take part: no driver");
  EXPECT_EQ(exec::find_obstacle({{"a", "", "", "no driver"}}, 0), "the backend nccl: no driver");
}

}  // namespace
}  // namespace bubblescope::tests
