// Tables of malformed files, one case per line: tests/fuzz/malformed/*.txt.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace bubblescope::tests {

struct MalformedCase {
  std::string where;    ///< "pytorch_csv.txt:12", for test output
  std::string content;  ///< the file, with \n, \r, \t, \\ and \x00 resolved
  std::string message;  ///< a part of the reader's message
};

/// The cases of one table. Where the table has a line "base: {...}", a case is "FIND -> REPLACE":
/// the base with the first FIND replaced.
std::vector<MalformedCase> load_malformed(const std::string& table);

/// Expects `read` to refuse every case of a table with the given message.
void expect_refusals(const std::string& table, const std::function<void(const std::string&)>& read);

/// Expects that `read` accepts or refuses, but never crashes on, truncations of a valid file and
/// files with changed, removed and duplicated bytes (seeded).
void expect_survival(const std::string& sound, const std::function<void(const std::string&)>& read);

}  // namespace bubblescope::tests
