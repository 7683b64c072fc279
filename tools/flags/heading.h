// The headings of --help, and warnings about flags without effect.
#pragma once

#include <string>

#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

/// Flags that are added while it lives appear under this heading; afterwards the previous one
/// returns.
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

/// Warns on stderr about each flag that was given under the heading: "bubblescope: --gpu changes
/// nothing without --model"; `why` is what follows "nothing".
void warn_of_unused(const CommandFlags& app, const std::string& heading, const std::string& why);

}  // namespace bubblescope::tools
