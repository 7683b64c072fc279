// Writes the dependency graph as DOT text, or renders it.
#include "traces/drawings/graphviz.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "traces/drawings/dot_graph.h"
#include "traces/drawings/graphviz_module.h"
#include "traces/files/format.h"
#include "traces/files/library.h"

namespace bubblescope::traces {

namespace {

/// Larger graphs take minutes and gigabytes to render, and are unreadable.
constexpr std::size_t kMaxRendered = 20'000;

/// Looks beside the program, and where the module is installed relative to the program.
std::string find_module() {
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path beside = folder / BUBBLESCOPE_GRAPHVIZ_MODULE;
  if (std::filesystem::exists(beside)) return beside;
  return folder / BUBBLESCOPE_MODULE_DIR / BUBBLESCOPE_GRAPHVIZ_MODULE;
}

template <class Function>
Function* expect_function(const LoadedLibrary& module, const char* name) {
  Function* function = nullptr;
  if (!find_function(module, name, function))
    throw Error(Fault::kMachine, fmt::format("{} has no {}; build and install both from one source",
                                             BUBBLESCOPE_GRAPHVIZ_MODULE, name));
  return function;
}

std::string write_graph(const StepRecord& record, const std::string& file) {
  const std::string format = std::filesystem::path(file).extension();
  if (format != ".svg" && format != ".png" && format != ".pdf") return write_dot(record);
  const std::size_t nodes = count_dot_nodes(record.program);
  if (nodes > kMaxRendered)
    throw Error(
        fmt::format("{}: a graph of {} is too large to render (at most {}); take fewer "
                    "micro-batches, or write it as .dot",
                    file, counted(nodes, "op"), kMaxRendered));
  return render_graph(write_dot(record), format.substr(1), find_module());
}

std::vector<FilePart> write_schedule_graph(const PricedSchedule& priced) {
  const Timeline timeline = simulate(priced.program, priced.timing).timeline;
  const BubbleReport report = analyze(priced.schedule, priced.program, timeline);
  return {{"", write_dot({priced.schedule, priced.program, timeline, report})}};
}

const Registrar<TimelineFormat> dot_timeline_registrar{[] {
  return TimelineFormat{"dot",
                        {"graphviz"},
                        "dependency graph (Graphviz; .svg, .png and .pdf names are rendered)",
                        write_graph,
                        {".dot", ".gv", ".svg", ".png", ".pdf"}};
}};

const Registrar<ScheduleFormat> dot_schedule_registrar{[] {
  return ScheduleFormat{"dot", {"graphviz"}, "dependency graph (Graphviz)", {}, {},
                        {},    false,        write_schedule_graph};
}};

}  // namespace

std::string render_graph(const std::string& dot, const std::string& format,
                         const std::string& module_file) {
  // The module is never closed: it keeps what Graphviz's plugins remember from graph to graph.
  const LoadedLibrary module = load_library({module_file});
  if (module.handle == nullptr)
    throw Error(Fault::kMachine,
                fmt::format("{} cannot be loaded, so graphs cannot be rendered: install "
                            "libgraphviz-dev and build again, or write a .dot file and render it "
                            "elsewhere ({})",
                            BUBBLESCOPE_GRAPHVIZ_MODULE, module.obstacle));
  auto* const render =
      expect_function<decltype(bubblescope_render_graph)>(module, "bubblescope_render_graph");
  auto* const release =
      expect_function<decltype(bubblescope_release_image)>(module, "bubblescope_release_image");
  const BubblescopeImage image = render(dot.c_str(), format.c_str());
  if (image.error != nullptr)
    throw Error(Fault::kMachine, fmt::format("{} ({})", image.error, format));
  const std::string bytes(image.bytes, image.size);
  release(image);
  return bytes;
}

}  // namespace bubblescope::traces
