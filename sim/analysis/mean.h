// A running mean.
#pragma once

namespace bubblescope::inline sim {

struct Mean {
  double sum = 0;
  double count = 0;

  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return count == 0 ? 0 : sum / count; }  ///< 0 of nothing
};

}  // namespace bubblescope::inline sim
