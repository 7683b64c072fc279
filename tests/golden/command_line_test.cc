// Tests the program as scripts see it: exit statuses, one clear line for every fault, and no
// half-written files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/command.h"
#include "tests/support/outcome.h"

namespace bubblescope::tests {
namespace {

TEST(CommandLine, ValuesThatAreTooLargeAreNamed) {
  const OutcomeCase cases[] = {
      {"simulate 1f1b --pp 4 -m 8 --f 9223372036854775807ns", 2, "is longer than 100 days"},
      {"simulate 1f1b --pp 4 -m 8 --f 8e6s --inject rank=0,slow=1000000", 2, "than 36 years"},
      {"simulate 1f1b --pp 4 -m 8 --f 8e6s --slow rank=0,factor=1000", 2, "than 36 years"},
      {"simulate 1f1b --pp 4 --model llama3-8b --global-batch-size 1099511627776", 2,
       "the limit is 16777216"},
      {"simulate 1f1b --pp 4 -m 8 --slow rank=0,factor=1e12", 2, "and 1000000000 at most"},
      {"simulate 1f1b --pp 4 -m 8 --slow rank=99999999999,factor=2", 2, "from 0 to 2147483647"},
      {"simulate gpipe --pp 2 -m 100000 --mem 4503599627,-4503599627,0", 2,
       "more memory than can be"},
      {"simulate - --costs -", 2, "can be read once"},
  };
  for (const OutcomeCase& test : cases) expect_outcome(test);
}

TEST(CommandLine, SaysWhatToWriteInstead) {
  const OutcomeCase cases[] = {
      {"simulate 1f1b --pp 4 -m 8 --svg x.png", 2, "of another format; end it in .svg"},
      {"simulate 1f1b,gpipe --pp 4 -m 8", 2,
       "'1f1b,gpipe' are several schedules, and one is taken here; 'bubblescope compare'"},
      {"compare 1f1b gpipe --pp 4 -m 8", 2, "one word too many: 'gpipe'; lists take commas"},
      {"check 1f1b,gpipe zb-h1 --pp 4 -m 8", 0, "gpipe: legal"},
      {"simulate Schedule1F1B --pp 4 -m 8", 2,
       "no schedule is called 'Schedule1F1B'; here it is '1f1b' ('bubblescope list"},
      {"compare 1f1b,ScheduleInterleaved1F1B --pp 4 -m 8", 2, "here it is 'interleaved'"},
      {"simulate ScheduleGPipe --pp 4 -m 8", 2, "here it is 'gpipe'"},
      {"simulate ScheduleInterleavedZeroBubble --pp 4 -m 8", 2, "here it is 'interleaved-zb'"},
      {"check ScheduleZBVZeroBubble --pp 4 -m 8", 2, "here it is 'zb-v'"},
      {"plan --pp 4 -m 8 --schedules ScheduleDualPipeV", 2, "here it is 'dualpipev'"},
      {"simulate ScheduleLoopedBFS --pp 4 -m 8", 2, "here it is 'bfs'"},
      {"simulate _ScheduleForwardOnly --pp 4 -m 8", 2, "here it is 'forward-only'"},
      {"simulate TrainSchedule --pp 4 -m 8", 2, "here it is '1f1b'"},
      {"simulate forward_backward_pipelining_with_interleaving --pp 4 -m 8", 2,
       "here it is 'interleaved'"},
      {"simulate ScheduleOfMine --pp 4 -m 8", 2, "no schedule is called 'ScheduleOfMine' ("},
      {"simulate 1f1b --pp 4 --m 8", 2, "no flag is called '--m'; here it is '-m'"},
      {"simulate 1f1b --pp 4 -m 8 --nodes 2", 2, "devices are the product of '--pp', '--tp'"},
      {"plan --model llama3-8b --num-gpus 8", 2, "here it is '--gpus'"},
      {"check 1f1b --pp 4 -m 8 --fail-if 'bubble_ratio>0.1'", 2, "check fails by itself"},
      {"search 1f1b --pp 4", 2, "too many: '1f1b'; bubblescope search takes flags alone"},
      {"compare 1f1b --pp 4 8 -m 16", 2, "one word too many: '8'; lists take commas"},
      {"version", 0, "bubblescope "},
      {"search --pp 32 -m 8 --cap 0.5", 1,
       "but one micro-batch alone needs 1; raise --cap; 31 more ranks may hold too "
       "little"},
  };
  for (const OutcomeCase& test : cases) expect_outcome(test);
}

TEST(CommandLine, EveryFaultIsOneLineWithItsStatus) {
  const OutcomeCase cases[] = {
      {"simulat 1f1b", 2, "did you mean 'simulate'?"},
      {"simulate 1f2b --pp 4 -m 8", 2, "did you mean '1f1b'?"},
      {"simulate 1f1b -m 8", 2, "needs --pp"},
      {"simulate 1f1b --pp 4", 2, "needs -m"},
      {"simulate --pp 4 -m 8", 2, "SCHEDULE"},
      {"simulate 1f1b --pp 0 -m 8", 2, "--pp"},
      {"simulate 1f1b --pp four -m 8", 2, "--pp"},
      {"simulate 1f1b --pp 4 -m 8 extra", 2, "'extra'"},
      {"simulate 1f1b --pp 4 -m 8 --formt json", 2, "did you mean '--format'?"},
      {"simulate 1f1b --pp 4 -m 8 --format jsn", 2, "did you mean 'json'?"},
      {"simulate 1f1b --pp 4 -m 8 --f 1parsec", 2, "--f: '1parsec' is not a duration"},
      {"simulate 1f1b --pp 4 -m 8 --f -1", 2, "--f"},
      {"simulate 1f1b --pp 4 -m 8 --mem 1,0", 2, "three amounts"},
      {"simulate 1f1b --pp 4 -m 8 --mem 1,0,0", 2, "add up to 0"},
      {"simulate 1f1b --pp 4 -m 8 --cap 1,2", 2, "--cap has 2 entries for 4 ranks"},
      {"simulate 1f1b --pp 4 -m 8 --cap 2", 1, "over --cap 2"},
      {"simulate 1f1b --pp 4 -m 8 --profile torch", 2, "did you mean 'pytorch' or 'pytorch-2.15'?"},
      {"simulate 1f1b --pp 4 -m 8 --p2p-mode eager", 2, "eager:2"},
      {"simulate 1f1b --pp 4 -m 8 --p2p-mode eager:-1", 2, "--p2p-mode"},
      {"simulate 1f1b --pp 4 -m 8 --vpp 2", 2, "always has 1 chunk"},
      {"simulate 1f1b --pp 4 -m 8 --slices 2", 2, "does not slice sequences"},
      {"simulate 1f1b --pp 4 -m 8 --microbatch-group-size 2", 2, "has no groups"},
      {"simulate dualpipe --pp 3 -m 8", 1, "--pp must be even"},
      {"simulate 1f1b --pp 60000 -m 16000000", 2, "the limit is"},
      {"simulate 1f1b --pp 4 -m 8 --fail-if 'bubble_ratio>0.1'", 1, "failed: bubble_ratio>0.1"},
      {"simulate 1f1b --pp 4 -m 8 --fail-if 'bubble_ratio'", 2, "is not a condition"},
      {"simulate 1f1b --pp 4 -m 8 --fail-if 'buble_ratio>1'", 2, "did you mean 'bubble_ratio'?"},
      {"simulate missing.csv", 2, "cannot read missing.csv"},
      {"simulate 1f1b --pp 4 -m 8 --costs missing.json", 2, "cannot read missing.json"},
      {"simulate 1f1b --pp 4 -m 8 --costs x.json --f 1", 2, "leave out --f"},
      {"simulate 1f1b --pp 4 -m 8 --svg /no/such/folder/x.svg", 2, "make its folder first"},
      {"simulate 1f1b --pp 4 -m 8 > /dev/full", 3, "could not be written"},
      {"simulate 1f1b --pp 4 -m 8 --f x 2> /dev/full", 2, ""},
      {"convert 1f1b --pp 4 -m 8 --to pytorchcsv", 2, "did you mean 'pytorch-csv'?"},
      {"convert 1f1b --pp 4 -m 8", 2, "--to"},
      {"check 1f1b --pp 8 -m 4 --profile pytorch", 1, "pytorch"},
      {"check interleaved --pp 2 -m 2 --lowering deferred --p2p-mode rendezvous", 1, "DEADLOCK"},
      {"compare gpipe,dualpipe --pp 3 -m 8", 1, "--pp must be even"},
      {"compare , --pp 4 -m 8", 2, "compare needs schedules"},
      {"compare 1f1b", 2, "compare needs --pp and -m"},
      {"search -m 8", 2, "'bubblescope search --pp 4 -m 8'"},
      {"search --pp 4 -m 8 --placement w", 2, "--placement: 'w' is not one of"},
      {"search --pp 4 -m 8 --vpp 2", 1, "one stage per rank"},
      {"search --pp 4 -m 8 --cap 0.5", 1, "rank 0 may hold 0.5, but one micro-batch alone needs 1"},
      {"search --pp 4 -m 8 --p2p-mode fifo", 2, "simulate the schedule that it saves"},
      {"partition x.txt", 2, "--workers 4"},
      {"partition missing.txt --stages 4", 2, "cannot read missing.txt"},
      {"partition x.txt --workers 4 --stages 4", 2, "leave one out"},
      {"partition x.txt --levels 2x2 --workers 5", 2, "--levels has 4 workers"},
      {"partition x.txt --workers 4 --bandwidth fast", 2, "--bandwidth: 'fast' is not a size"},
      {"list things", 2, "list shows"},
      {"diff missing.json other.json", 2, "cannot read missing.json"},
      {"completion tcsh", 2, "bash, zsh and fish"},
      {"", 2, "usage"},
  };
  for (const OutcomeCase& test : cases) expect_outcome(test);
}

TEST(CommandLine, SaysHowOftenAFlagIsGivenAndWhichNumbersItTakes) {
  const OutcomeCase cases[] = {
      {"simulate 1f1b --pp 4 --pp 2 -m 8", 2, "--pp is given more than once; give it once"},
      {"simulate 1f1b --pp 4 -m 8 --cap", 2, "--cap needs a value"},
      {"simulate 1f1b --pp 4 -m 8 --svg --cap 8", 2, "--svg needs a value"},
      {"simulate 1f1b --pp 4 -m 8 --svg= --f 3", 2, "--svg needs a value"},
      {"compare 1f1b --svg --pp 4 -m 8", 2, "--svg needs a value"},
      {"simulate 1f1b --pp 4 -m 8 --fsdp=", 2, "--fsdp takes no value"},
      {"plan --pp 4 -m 8 --schedules 1f1b --top -1", 2, "--top: '-1' is below 0"},
      {"plan --pp 4 -m 8 --schedules 1f1b --top 0", 2, "--top 0 shows no plan; give 1 or more"},
      {"simulate 1f1b --pp 4 -m 8 --jitter 5% --noise-seed -1", 2, "'-1' is below 0"},
  };
  for (const OutcomeCase& test : cases) expect_outcome(test);
}

TEST(CommandLine, SaysWhatIsMeantAndWhatCannotBe) {
  const OutcomeCase cases[] = {
      {"simulate 1f1b --pp 4 -m 8 --fail-if 'bubble_ratio>10'", 2, "for 10 % write 0.1"},
      {"simulate 1f1b --pp 4 -m 8 --fail-if 'bubble_ratio>1'", 2, "never holds"},
      {"simulate 1f1b --pp 4 -m 8 --fail-if 'makespan_ns>=-1'", 2, "always holds"},
      {"simulate 1f1b --pp 4 -m 8 --fail-if 'bubble_overhead>10'", 0, ""},
      {"simulate 1f1b --pp 4 -m 8 --model llama3-70b", 0, "DOES NOT FIT"},
      {"simulate 1f1b --pp 4 -m 8 --model llama3-70b --fail-if 'head_room_bytes<0'", 1,
       "failed: head_room_bytes<0"},
      {"simulate 1f1b --pp 4 -m 8 --mbs 2", 2, "did you mean '--micro-batch-size'?"},
      {"simulate 1f1b --pp 4 -m 8 --model llama-70b", 2,
       "did you mean 'llama2-70b' or 'llama3-70b'?"},
      {"simulate zero-bubble --pp 4 -m 8", 2, "'zb-1p'"},
      {"check forward-only --pp 4 -m 8", 0, "legal, forwards alone"},
      {"check 1f1b --pp 4 -m 8 --model llama3-70b", 2, "'bubblescope simulate --model'"},
  };
  for (const OutcomeCase& test : cases) expect_outcome(test);
}

// A file is recognized even if its name has no dot.
TEST(CommandLine, ReadsSchedulesOfAnyName) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("bubblescope-name-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "mine") << "0F0 0B0\n";
  std::ofstream(folder / "1f1b") << "0F0 0B0\n";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  expect_outcome({"check mine", 0, "mine: legal"});
  expect_outcome({"check 1f1b --pp 2 -m 2", 0, "held at the peak, rank by rank: 2 1"});
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

TEST(CommandLine, RefusesToHoldLessWhereThatCannotBe) {
  const OutcomeCase cases[] = {
      {"simulate 1f1b --pp 4 -m 8 --recompute fll", 2, "did you mean 'full'?"},
      {"simulate 1f1b --pp 4 -m 8 --recompute full,none", 2, "--recompute has 2 entries"},
      {"simulate forward-only --pp 4 -m 8 --recompute full", 2, "runs forward only"},
      {"simulate 1f1b --pp 4 -m 8 --saved-fraction 1.5", 2,
       "--saved-fraction: '1.5' is not a fraction"},
      {"simulate 1f1b --pp 4 -m 8 --offload 1,0", 2, "--offload: '0' is not a number of ops"},
      {"simulate bpipe --pp 4 -m 8 --offload 1", 2, "bpipe evicts already"},
      {"convert bpipe --pp 4 -m 8 --to pytorch-csv", 2, "moves activations (0EVICT"},
  };
  for (const OutcomeCase& test : cases) expect_outcome(test);
}

TEST(CommandLine, SaysBeforeTheWorkThatItsFileHasNoFolder) {
  const OutcomeCase cases[] = {
      {"calibrate --pp 2 -m 2 -o /no/such/folder/x.json", 2, "make its folder first"},
      {"run 1f1b --pp 2 -m 2 --save /no/such/folder/x.json", 2, "make its folder first"},
  };
  for (const OutcomeCase& test : cases) expect_outcome(test);
}

TEST(CommandLine, SaysWhichFlagsChangeNothing) {
  const OutcomeCase cases[] = {
      {"simulate 1f1b --pp 4 -m 8 --tp 8", 0, "--tp changes nothing without --model"},
      {"compare 1f1b --pp 4 -m 8 --gpu a100", 0, "--gpu changes nothing without --model"},
      {"search --pp 2 -m 2 --dp 2", 0, "--dp changes nothing without --model"},
      {"plan --pp 2 -m 2 --zero 1", 0, "--zero changes nothing without --model"},
      {"plan --pp 2 -m 2 --gpus 64", 0, "--gpus changes nothing without --model"},
      {"run 1f1b --pp 2 -m 2 --work transformer --hidden-size 8 --f 3", 0,
       "--f and other costs change nothing"},
      {"simulate 1f1b --pp 4 -m 8 --seeds 9", 0, "--seeds changes nothing without noise"},
      {"compare 1f1b --pp 4 -m 8 --steps 3", 0, "--steps changes nothing without --backend"},
      {"run 1f1b --pp 2 -m 2 --hidden-size 8", 0, "changes nothing without --work transformer"},
      {"run 1f1b --pp 2 -m 2 --graph", 0, "--graph changes nothing on the backend cpu"},
      {"run 1f1b --pp 2 -m 2 --save-training x.json", 2, "add --work transformer"},
      {"search --pp 2 -m 2 -o found.csv", 2, "a search writes our own json"},
  };
  for (const OutcomeCase& test : cases) expect_outcome(test);
  const std::string assigned =  // 16 samples / (2 per micro-batch x 2 pipelines) = 4
      run_with_messages("simulate 1f1b --pp 4 --global-batch-size 16 --dp 2 --micro-batch-size 2")
          .output;
  EXPECT_EQ(assigned.find("1f1b: 4 ranks, 4 micro-batches"), 0u) << assigned;
  const std::string needed =
      run_with_messages("compare 1f1b --pp 2 -m 2 --model llama3-8b --seq-length 64 --jitter 1%")
          .output;
  EXPECT_EQ(needed.find("changes nothing"), std::string::npos) << needed;
}

TEST(CommandLine, HelpOfACommandIsItsHelp) {
  EXPECT_EQ(run_command("help check").output, run_command("check --help").output);
  EXPECT_EQ(run_command("help").output, run_command("--help").output);
  expect_outcome({"help chek", 2, "no command is called 'chek'; did you mean 'check'?"});
}

// An example that has lines of its own is folded as one command, not line by line.
TEST(CommandLine, ExamplesHaveNoLineThatOnlyContinues) {
  for (const char* command : {"calibrate", "check", "convert", "plan", "search", "simulate"}) {
    const std::string help = run_command(std::string(command) + " --help").output;
    EXPECT_EQ(help.find("\n  \\\n"), std::string::npos) << help;
    EXPECT_EQ(help.find("\nand\n"), std::string::npos) << help;
  }
}

TEST(CommandLine, EveryCommandHelpsWithAnExample) {
  for (const char* command : {"simulate", "compare", "check", "convert", "search", "partition",
                              "diff", "list", "completion"}) {
    const CommandOutcome outcome = run_with_messages(std::string(command) + " --help");
    EXPECT_EQ(outcome.status, 0) << command;
    EXPECT_NE(outcome.output.find("example"), std::string::npos) << command;
  }
  EXPECT_EQ(run_with_messages("--version").output.rfind("bubblescope ", 0), 0u);
}

/// libsqlite3 is opened only when a database is read. If it is not installed, only databases are
/// refused. Here a file that is not a library takes its place.
TEST(CommandLine, ADatabaseIsRefusedWhereItsLibraryIsMissing) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("no-sqlite-" + std::to_string(getpid()));
  fs::create_directory(folder);
  std::ofstream(folder / "libsqlite3.so.0") << "no library";
  std::ofstream(folder / "trace.sqlite") << "SQLite format 3" << std::string(100, '\0');
  setenv("LD_LIBRARY_PATH", folder.c_str(), 1);
  expect_outcome({("analyze " + (folder / "trace.sqlite").string()).c_str(), 3,
                  "cannot read a database without libsqlite3"});
  expect_outcome({"simulate 1f1b --pp 4 -m 8", 0, "makespan"});
  unsetenv("LD_LIBRARY_PATH");
  fs::remove_all(folder);
}

TEST(CommandLine, LeavesNothingBehindWhenWritingFails) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("bubblescope-cli-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::filesystem::create_directory(folder / "taken.svg");  // a folder blocks the name
  const CommandOutcome outcome =
      run_with_messages("simulate 1f1b --pp 2 -m 2 --svg " + (folder / "taken.svg").string());
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  const auto entries = std::distance(std::filesystem::directory_iterator(folder), {});
  EXPECT_EQ(entries, 1) << "a temporary file was left";
  std::filesystem::remove_all(folder);
}

TEST(CommandLine, DiffShowsTheFirstDivergence) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("bubblescope-diff-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string a = (folder / "a.json").string();
  const std::string b = (folder / "b.json").string();
  ASSERT_EQ(run_with_messages("simulate 1f1b --pp 2 -m 2 --save " + a).status, 0);
  ASSERT_EQ(run_with_messages("simulate 1f1b --pp 2 -m 2 --p2p 0.5 --save " + b).status, 0);
  EXPECT_EQ(run_with_messages("diff " + a + " " + a + " --fail-if 'makespan_ns_change!=0'").status,
            0);
  const auto refusal_of = [&](const std::string& number) {
    return run_with_messages("diff " + a + " " + b + " --fail-if '" + number + ">1%'").output;
  };
  for (const char* number :
       {"step_ns_change", "step_change", "makespan_change", "makspan_ns_change"})
    EXPECT_NE(refusal_of(number).find("; did you mean 'makespan_ns_change'? ("), std::string::npos)
        << refusal_of(number);
  for (const char* number : {"slowdown_change", "memory_change"})
    EXPECT_EQ(refusal_of(number).find("did you mean"), std::string::npos) << refusal_of(number);
  EXPECT_EQ(run_with_messages("diff " + a + " " + a + " --fail-if 'makespan_ns_change>1%'").status,
            0);
  const CommandOutcome outcome =
      run_with_messages("diff " + a + " " + b + " --fail-if 'makespan_ns_change>0.1'");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("first divergence: 1F0 on rank 1"), std::string::npos)
      << outcome.output;
  std::filesystem::remove_all(folder);
}

// One rank alone has no bubble, and nothing is a multiple of that.
TEST(CommandLine, DiffNamesNoRatioToZero) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("bubblescope-zero-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string a = (folder / "a.json").string();
  const std::string b = (folder / "b.json").string();
  ASSERT_EQ(run_with_messages("simulate 1f1b --pp 1 -m 2 --save " + a).status, 0);
  ASSERT_EQ(run_with_messages("simulate 1f1b --pp 2 -m 2 --save " + b).status, 0);
  const CommandOutcome outcome =
      run_with_messages("diff " + a + " " + b + " --fail-if 'bubble_ratio_change>100'");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_EQ(outcome.output.find("inf%"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("      from 0\n"), std::string::npos) << outcome.output;
  std::filesystem::remove_all(folder);
}

// Each stage saves 2^60 - 1 bytes per micro-batch: one is the most that can be counted.
TEST(CommandLine, SumsOfMemoryDoNotWrap) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("bubblescope-memory-" + std::to_string(getpid()));
  const std::string stage =
      R"({"forward":1,"backward":2,"weight_bytes":1152921504606846975,)"
      R"("activation_bytes":{"saved":1152921504606846975,"released_by_input_grad":1}})";
  std::ofstream(file) << R"({"format":"bubblescope-costs/1","stages":[)" << stage << "," << stage
                      << "]}";
  const std::string costs = " --pp 2 --costs " + file.string();
  EXPECT_EQ(run_with_messages("simulate gpipe -m 1" + costs).status, 0);
  for (const char* command :
       {"simulate gpipe -m 2", "simulate gpipe -m 64", "simulate pipedream -m 16"})
    expect_outcome({(command + costs).c_str(), 2, "more memory than can be counted"});
  std::filesystem::remove(file);
}

TEST(CommandLine, DiffRefusesNumbersThatNoReportHolds) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("bubblescope-report-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string report = (folder / "r.json").string();
  for (const char* number :
       {R"("makespan_ns":-5)", R"("pp":-1)", R"("makespan_ns":1e300)", R"("bubble":{"ratio":-0.5})",
        R"("ranks":[{"peak_activations":9e18}])"}) {
    std::ofstream(report) << R"({"format":"bubblescope-report/1",)" << number << "}";
    expect_outcome({("diff " + report + " " + report).c_str(), 2, "of a report"});
  }
  std::ofstream(report) << R"({"format":"bubblescope-report/1","head_room_bytes":-1})";
  EXPECT_EQ(run_with_messages("diff " + report + " " + report).status, 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace bubblescope::tests
