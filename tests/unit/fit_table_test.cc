// Tables and lines in little space.
#include "traces/fit_table.h"

#include <gtest/gtest.h>

namespace bubblescope {
namespace {

const std::vector<TableColumn> kColumns{{"name", {"one", "two"}, true, kAlwaysShown},
                                        {"why", {"because", "so"}, false, 1},
                                        {"time", {"12 ms", "3 ms"}, false, 5}};

TEST(Table, HoldsAllColumnsWhereNothingLimitsIt) {
  EXPECT_EQ(draw_table(kColumns).text,
            "name      why   time\n"
            "one   because  12 ms\n"
            "two        so   3 ms\n");
}

TEST(Table, LeavesOutWhatMattersLeast) {
  const FittedTable table = draw_table(kColumns, 19);  // one column too narrow
  EXPECT_EQ(table.text, "name   time\none   12 ms\ntwo    3 ms\n");
  EXPECT_EQ(table.hidden, std::vector<std::string>{"why"});
  EXPECT_EQ(hidden_note(table.hidden), "not shown: why (--wide shows all)\n");
  EXPECT_EQ(draw_table(kColumns, 20).hidden.size(), 0U);
  EXPECT_EQ(draw_table(kColumns, 1).text, "name\none\ntwo\n");
}

TEST(FoldedLines, BreakBetweenWordsBelowWhatTheyAreOf) {
  EXPECT_EQ(fold_lines("costs    one two three four\n", 18),
            "costs    one two\n         three\n         four\n");
  EXPECT_EQ(fold_lines("one two three", 7), "one two\n  three");
  EXPECT_EQ(fold_lines("short\n\nlines\n", 10), "short\n\nlines\n");
  EXPECT_EQ(fold_lines("unbreakable\n", 5), "unbreakable\n");  // words are not split
}

}  // namespace
}  // namespace bubblescope
