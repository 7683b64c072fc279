// The headings under which --help lists flags, and what is said of flags that nothing reads.
#pragma once

#include <string>

#include "tools/flags/command_flags.h"

namespace bubblescope {

/// Flags that are added while it lives stand under this heading; after it, under the one before.
class Heading {
 public:
  Heading(CommandFlags& app, const std::string& text) : app_(app), before_(app.heading()) {
    app_.set_heading(text);
  }
  ~Heading() { app_.set_heading(before_); }
  Heading(const Heading&) = delete;
  Heading& operator=(const Heading&) = delete;

 private:
  CommandFlags& app_;
  std::string before_;
};

/// "bubblescope: --gpu changes nothing without --model", on stderr, for each flag that was given
/// under the heading; `why` is what follows "nothing".
void warn_of_unused(const CommandFlags& app, const std::string& heading, const std::string& why);

}  // namespace bubblescope
