// The beginnings of orders that are known to lead nowhere.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedules/search/deadline_test.h"

namespace bubblescope {

/// Keeps failures and tells whether another prefix can only fail too: one that has run the same
/// ops, with no result there earlier.
class FailedPrefixes {
 public:
  struct Prefix {
    std::string ops;           ///< what has run, and what must not come next
    std::vector<Nanos> times;  ///< when ranks are free and when results not yet used can be used
  };

  static Prefix describe(const SearchProblem& problem, const Progress& progress,
                         const std::vector<unsigned long long>& refused);

  bool covers(const Prefix& prefix) const;
  void add(Prefix prefix);

 private:
  std::unordered_map<std::string, std::vector<std::vector<Nanos>>> failures_;
  std::int64_t kept_ = 0;
};

}  // namespace bubblescope
