// Queries the terminal, and folds what is printed to it.
#include "tools/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "exec/runtime/launchers.h"
#include "tools/print.h"
#include "traces/text/fit_table.h"

namespace bubblescope::tools {

namespace {

constexpr int kDefaultWidth = 80;

/// mpirun gives every process a terminal of its own, wherever its output goes.
bool runs_under_mpirun() {
  return std::any_of(
      std::begin(exec::kMpiruns), std::end(exec::kMpiruns),
      [](const exec::Launcher& launcher) { return std::getenv(launcher.rank) != nullptr; });
}

}  // namespace

traces::DrawOptions detect_draw_options() {
  traces::DrawOptions options;
  options.width = kDefaultWidth;
  if (isatty(STDOUT_FILENO) == 0 || runs_under_mpirun()) return options;
  const char* no_colour = std::getenv("NO_COLOR");
  options.colour = no_colour == nullptr || *no_colour == '\0';
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= kDefaultWidth / 2)
    options.width = size.ws_col;
  options.fit = true;
  return options;
}

void print_fitted(std::string_view lines, bool folds) {
  if (folds)
    print_output_text(traces::fold_lines(lines, detect_draw_options().width));
  else
    print_output_text(lines);
}

void print_result(std::string_view result, OutputFormat format) {
  print_fitted(result, format == OutputFormat::kText && detect_draw_options().fit);
}

}  // namespace bubblescope::tools
