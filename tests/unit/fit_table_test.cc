// Tests tables and lines that must fit a narrow terminal.
#include "traces/text/fit_table.h"

#include <gtest/gtest.h>

#include <string>

namespace bubblescope::tests {
namespace {

const std::vector<traces::TableColumn> kColumns{
    {"name", {"one", "two"}, true, traces::kAlwaysShown},
    {"why", {"because", "so"}, false, 1},
    {"time", {"12 ms", "3 ms"}, false, 5}};

TEST(Table, HoldsAllColumnsWhereNothingLimitsIt) {
  EXPECT_EQ(traces::draw_table(kColumns).text,
            "name      why   time\n"
            "one   because  12 ms\n"
            "two        so   3 ms\n");
}

TEST(Table, LeavesOutWhatMattersLeast) {
  const traces::FittedTable table = traces::draw_table(kColumns, 19);  // one column too narrow
  EXPECT_EQ(table.text, "name   time\none   12 ms\ntwo    3 ms\n");
  EXPECT_EQ(table.hidden, std::vector<std::string>{"why"});
  EXPECT_EQ(traces::describe_hidden(table.hidden), "not shown: why (`wide` shows all)\n");
  EXPECT_EQ(traces::draw_table(kColumns, 20).hidden.size(), 0U);
  EXPECT_EQ(traces::draw_table(kColumns, 1).text, "name\none\ntwo\n");
}

// "same" is as important as "time", but it is the same in every row.
TEST(Table, KeepsWhatTellsRowsApart) {
  std::vector<traces::TableColumn> columns = kColumns;
  columns.push_back({"same", {"1", "1"}, false, 5});
  columns[1].importance = 1;
  EXPECT_EQ(traces::draw_table(columns, 25).hidden, std::vector<std::string>{"same"});
  EXPECT_EQ(traces::draw_table(columns, 19).hidden, (std::vector<std::string>{"why", "same"}));
  EXPECT_EQ(traces::draw_table({{"name", {"one"}, true, traces::kAlwaysShown},
                                {"a", {"1"}, false, 2},
                                {"b", {"2"}, false, 1}},
                               8)
                .hidden,
            std::vector<std::string>{"b"});  // one row: the least important
}

std::vector<traces::TableColumn> parts_of_ten() {
  return {{"name", {"one", "two"}, true, traces::kAlwaysShown},
          {"all", {"10", "20"}, false, 9},
          {"first", {"1", "2"}, false, 3, true},
          {"second", {"2", "4"}, false, 1, true},
          {"third", {"7", "14"}, false, 2, true}};
}

/// The sum of the folded parts: "first" is 1 tenth of each row, "second" 2 and "third" 7.
traces::TableColumn folded(const std::vector<std::string>& heads) {
  int tenths = 0;
  for (const std::string& head : heads) tenths += head == "first" ? 1 : head == "second" ? 2 : 7;
  return {"other", {std::to_string(tenths), std::to_string(2 * tenths)}, false};
}

TEST(Table, FoldsPartsThatDoNotFitSoThatRowsAddUp) {
  EXPECT_EQ(traces::draw_table(parts_of_ten(), {}, folded).text,
            "name  all  first  second  third\n"
            "one    10      1       2      7\n"
            "two    20      2       4     14\n");
  const traces::FittedTable table = traces::draw_table(parts_of_ten(), 24, folded);
  EXPECT_EQ(table.text,
            "name  all  first  other\n"
            "one    10      1      9\n"
            "two    20      2     18\n");
  EXPECT_EQ(table.hidden, (std::vector<std::string>{"second", "third"}));
  // No part is left, so "other" would repeat "all".
  EXPECT_EQ(traces::draw_table(parts_of_ten(), 12, folded).text,
            "name  all\none    10\ntwo    20\n");
}

TEST(FoldedLines, BreakBetweenWordsBelowWhatTheyAreOf) {
  EXPECT_EQ(traces::fold_lines("costs    one two three four\n", 18),
            "costs    one two\n         three\n         four\n");
  EXPECT_EQ(traces::fold_lines("one two three", 7), "one two\n  three");
  EXPECT_EQ(traces::fold_lines("    one two three", 10), "    one\n    two\n    three");
  EXPECT_EQ(traces::fold_lines("a label of 21 columns  one two", 27),
            "a label of 21 columns  one\n  two");
  EXPECT_EQ(
      traces::fold_lines("a label of 21 columns  one two three four five six seven eight", 50, 30),
      "a label of 21 columns  one two three four five six\n" + std::string(23, ' ') +
          "seven eight");
  EXPECT_EQ(traces::fold_lines("short\n\nlines\n", 10), "short\n\nlines\n");
  EXPECT_EQ(traces::fold_lines("unbreakable\n", 5), "unbreakable\n");  // words are not split
}

}  // namespace
}  // namespace bubblescope::tests
