// Failed prefixes: beginnings of orders that no order can complete in time.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedules/search/deadline_test.h"

namespace bubblescope::schedules {

/// Stores failed prefixes and decides whether another one must fail too: one with the same ops, and
/// no result earlier.
class FailedPrefixes {
 public:
  struct Prefix {
    std::string ops;           ///< the ops that have run, and those that must not come next
    std::vector<Nanos> times;  ///< when ranks are free and when unused results become available
  };

  static Prefix describe(const SearchProblem& problem, const Progress& progress,
                         const std::vector<unsigned long long>& refused);

  bool dominates(const Prefix& prefix) const;
  void add(Prefix prefix);

 private:
  std::unordered_map<std::string, std::vector<std::vector<Nanos>>> failures_;
  std::int64_t kept_ = 0;
};

}  // namespace bubblescope::schedules
