// Adds --format.
#include "tools/flags/output_format.h"

#include "tools/flags/choice.h"

namespace bubblescope::tools {

void add_format_option(CommandFlags& app, OutputFormat& format,
                       const std::vector<OutputFormat>& choices) {
  format = choices.front();
  Choices<OutputFormat> named;
  for (const OutputFormat choice : choices)
    named.emplace_back(name_of(kOutputFormats, choice), choice);
  add_choice<OutputFormat>(app, {"--format", "how the result is printed"}, named,
                           [&format](OutputFormat chosen) { format = chosen; });
}

}  // namespace bubblescope::tools
