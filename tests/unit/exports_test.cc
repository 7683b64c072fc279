// The files that commands write of their steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/perfetto_reader.h"
#include "tests/support/temporary_folder.h"
#include "tools/command_line.h"
#include "traces/files/file.h"
#include "traces/files/format.h"

namespace bubblescope::tests {
namespace {

class Exports : public TemporaryFolder {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  /// Runs compare and keeps every step small.
  int compare(const std::string& schedules, tools::Arguments further) const {
    tools::Arguments arguments{schedules, "--pp", "2", "-m", "4"};
    arguments.insert(arguments.end(), further.begin(), further.end());
    return call_command(tools::run_compare, arguments).status;
  }
};

using Names = std::vector<std::string>;

TEST_F(Exports, AreOfTheseFormats) {
  Names names;
  for (const traces::TimelineFormat& format : Registry<traces::TimelineFormat>::instance().all()) {
    names.push_back(format.name);
    EXPECT_NE(static_cast<bool>(format.write), static_cast<bool>(format.stream)) << format.name;
  }
  EXPECT_EQ(names, (Names{"dot", "html", "perfetto", "save", "svg", "timeline", "trace"}));
}

TEST_F(Exports, AreFlagsOfEveryCommandThatHasATimeline) {
  for (const char* command : {"simulate", "compare", "search", "run", "analyze", "diff"}) {
    const std::string help = run_command(std::string(command) + " --help").output;
    for (const traces::TimelineFormat& format : Registry<traces::TimelineFormat>::instance().all())
      EXPECT_NE(help.find("--" + format.name + " FILE"), help.npos) << command << format.name;
  }
}

TEST_F(Exports, OfSeveralStepsStandInOneFileWhereItsFormatCanHoldThem) {
  ASSERT_EQ(compare("gpipe,1f1b", {"--perfetto", path("a.pftrace"), "--html", path("a.html")}), 0);
  EXPECT_EQ(files(), (Names{"a.html", "a.pftrace"}));
  const PerfettoFile file = read_perfetto(traces::read_file(path("a.pftrace")));
  std::size_t steps = 0;
  for (const ReadSlice& slice : file.slices) steps += slice.category == "step";
  EXPECT_EQ(steps, 2u);
}

TEST_F(Exports, OfSeveralStepsAreOneFileEachElsewhere) {
  ASSERT_EQ(compare("gpipe,1f1b", {"--svg", path("a.b.svg"), "--trace", path("c.json.gz")}), 0);
  EXPECT_EQ(files(), (Names{"a-1f1b.b.svg", "a-gpipe.b.svg", "c-1f1b.json.gz", "c-gpipe.json.gz"}));
}

TEST_F(Exports, OfOneStepHaveTheNameThatWasAskedFor) {
  ASSERT_EQ(compare("1f1b", {"--svg", path("a.svg")}), 0);
  EXPECT_EQ(files(), (Names{"a.svg"}));
}

TEST_F(Exports, ShowAMeasuredStepBesideItsPrediction) {
  ASSERT_EQ(compare("1f1b", {"--backend", "cpu", "--f", "0.2", "--b", "0.4", "--steps", "1",
                             "--html", path("a.html"), "--timeline", path("a.csv")}),
            0);
  EXPECT_EQ(files(), (Names{"a-1f1b-measured.csv", "a-1f1b-predicted.csv", "a.html"}));
  EXPECT_NE(traces::read_file(path("a.html")).find("\"against\":0"), std::string::npos);
}

TEST_F(Exports, ShowBothSidesOfADiff) {
  ASSERT_EQ(compare("gpipe,1f1b", {"--save", path("s.json")}), 0);
  const auto diff = [&](const std::string& b) {
    return run_with_messages("diff " + path("s-gpipe.json") + " " + b + " --html " +
                             path("d.html"));
  };
  EXPECT_EQ(diff(path("s-1f1b.json")).status, 0);
  const std::string page = traces::read_file(path("d.html"));
  EXPECT_NE(page.find("\"label\":\"A\",\"against\":null"), page.npos);
  EXPECT_NE(page.find("\"label\":\"B\",\"against\":0"), page.npos);
  run_command("simulate 1f1b --pp 2 -m 4 --format json > " + path("report.json"));
  const CommandOutcome outcome = diff(path("report.json"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.output.find("give two files of --save"), std::string::npos) << outcome.output;
}

TEST_F(Exports, OfSeveralStepsDoNotGoToStdoutTogether) {
  const CommandOutcome outcome = run_with_messages("compare gpipe,1f1b --pp 2 -m 4 --svg -");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.output.find("give --svg a file name"), std::string::npos) << outcome.output;
}

TEST_F(Exports, OfStepsWithOneNameAreFilesOfTheirOwn) {
  std::filesystem::create_directory(folder_ / "s");
  for (const char* name : {"s/x.csv", "s-x.csv"})
    ASSERT_EQ(
        run_with_messages("convert 1f1b --pp 2 -m 4 --to pytorch-csv -o " + path(name)).status, 0);
  const CommandOutcome outcome = run_with_messages("compare " + path("s/x.csv") + "," +
                                                   path("s-x.csv") + " --svg " + path("a.svg"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  Names drawn = files();
  std::erase_if(drawn, [](const std::string& name) { return !name.ends_with(".svg"); });
  ASSERT_EQ(drawn.size(), 2u) << outcome.output;
  EXPECT_TRUE(drawn[0].ends_with("s-x.csv-2.svg")) << drawn[0];
  EXPECT_TRUE(drawn[1].ends_with("s-x.csv.svg")) << drawn[1];
}

TEST_F(Exports, WithoutMessagesRefuseToSayWhereReceivesArePosted) {
  const auto convert_to = [](const std::string& format) {
    return run_with_messages("convert 1f1b --pp 2 -m 2 --lowering asap --to " + format);
  };
  for (const char* format : {"goal", "text", "chakra", "native", "pytorch-csv"}) {
    const CommandOutcome outcome = convert_to(format);
    EXPECT_EQ(outcome.status, 2) << format;
    EXPECT_NE(outcome.output.find("--lowering says where"), std::string::npos) << outcome.output;
  }
  EXPECT_EQ(convert_to("pytorch-csv-comms").status, 0);
}

TEST_F(Exports, RefuseTheEndingOfAnotherFormat) {
  const auto status = [&](const std::string& flag, const std::string& name) {
    return run_with_messages("simulate 1f1b --pp 2 -m 4 " + flag + " " + path(name)).status;
  };
  EXPECT_EQ(status("--html", "a.svg"), 2);
  EXPECT_EQ(status("--perfetto", "a.json"), 2);
  EXPECT_EQ(status("--perfetto", "a.pftrace.gz"), 0);
  EXPECT_EQ(files(), (Names{"a.pftrace.gz"}));
}

TEST_F(Exports, SayTheCommandThatMadeThem) {
  ASSERT_EQ(call_command(tools::run_simulate,
                         {"1f1b", "--pp", "2", "-m", "2", "--html", path("a b.html")})
                .status,
            0);
  const std::string page = traces::read_file(path("a b.html"));
  EXPECT_NE(page.find("bubblescope simulate 1f1b --pp 2 -m 2 --html '" + path("a b.html") + "'"),
            page.npos);
}

TEST(CommandLine, IsWhatAShellTakes) {
  EXPECT_EQ(tools::format_command_line("check", {"1f1b", "a b", "it's", "", "$x"}),
            R"(bubblescope check 1f1b 'a b' 'it'\''s' '' '$x')");
}

}  // namespace
}  // namespace bubblescope::tests
