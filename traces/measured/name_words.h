// The words of a name, however it separates them: "grad_norm", "grad-norm", "Grad Norm" and
// "gradNorm" all have the words "grad" and "norm", and so does "NCCLSend" have "NCCL" and "Send".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bubblescope::traces {

/// The letters of a name in lower case, and where words begin: after other signs, and at capitals.
class NameWords {
 public:
  explicit NameWords(std::string_view name);

  /// Whether words in a row are this one, which may have one of the usual endings: "optimizers".
  bool have(std::string_view wanted) const;

  /// Whether a name consists of words with a hyphen, an underscore or a blank between them at most.
  bool are_all() const { return are_all_; }

  /// Whether no word is left.
  bool empty() const { return front_ == letters_.size(); }

  /// Removes words from the front if they are this one; false if they are not.
  bool take(std::string_view wanted);

 private:
  bool is_ending(std::size_t at) const;

  std::string letters_;
  std::vector<bool> begins_;  ///< [letter], and behind the last
  std::size_t front_ = 0;
  bool are_all_ = false;
};

}  // namespace bubblescope::traces
