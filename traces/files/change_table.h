// The changes between two runs of a job, in words, for the report of `diff` and its page.
#pragma once

#include <string>
#include <vector>

namespace bubblescope::traces {

struct ChangeRow {
  std::string what;  ///< "worker: rank 2 of replica 1"
  std::string a;     ///< "-" where A does not have it
  std::string b;
  std::string change;
};

struct ChangeTable {
  std::string title;  ///< of the first column
  std::vector<ChangeRow> rows = {};
  std::string remark = {};  ///< on rows that are left out, or on why there are none; may be empty
};

}  // namespace bubblescope::traces
