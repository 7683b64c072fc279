// The live handles of one kind. Using a handle that is not live is refused, and handles that are
// live at exit are leaks.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "tests/fake_cuda/calls.h"

namespace bubblescope::tests::fake_cuda {

template <class Value>
class Registry {
 public:
  /// `kind` is the plural noun of leak messages: "3 streams were never released".
  explicit Registry(const char* kind) : kind_(kind) {
    ask_for_leaks(
        [this] { return values_.empty() ? "" : std::to_string(values_.size()) + " " + kind_; });
  }

  Value* add(Value value) {
    auto owned = std::make_unique<Value>(std::move(value));
    Value* const handle = owned.get();
    values_.emplace(handle, std::move(owned));
    return handle;
  }

  bool has(const void* handle) const { return values_.count(handle) != 0; }

  Value& find(const void* handle, const std::string& call) const {
    const auto at = values_.find(handle);
    if (at == values_.end()) refuse(call + ": none of the " + kind_ + " in use");
    return *at->second;
  }

  template <class Action>
  void for_each(const Action& action) const {
    for (const auto& [handle, value] : values_) action(*value);
  }

  void remove(const void* handle, const std::string& call) {
    find(handle, call);
    values_.erase(handle);
  }

 private:
  std::string kind_;
  std::unordered_map<const void*, std::unique_ptr<Value>> values_;
};

}  // namespace bubblescope::tests::fake_cuda
