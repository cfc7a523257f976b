// SPDX-License-Identifier: Apache-2.0
// plot_metrics: a picture by gnuplot, which is looked for at run time only.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "gable/train/callbacks.hpp"

namespace gable::train {

namespace {

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

// A single-quoted gnuplot string.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string plot_metrics(const std::filesystem::path& folder) {
  if (!in_path("gnuplot"))
    return "no picture of the metrics: gnuplot is missing (apt-get install gnuplot-nox)";
  std::ifstream in(folder / "metrics.csv");
  std::stringstream csv;
  csv << in.rdbuf();
  const std::filesystem::path target = folder / "metrics.png";
  const std::filesystem::path temporary = folder / "metrics.png.tmp";
  std::FILE* gnuplot = popen("gnuplot >/dev/null 2>&1", "w");
  if (gnuplot == nullptr) return "no picture of the metrics: gnuplot cannot be started";
  const std::string script =
      "$data << END_OF_DATA\n" + csv.str() + "END_OF_DATA\n" +
      "set terminal png size 900,500\nset output " + quoted(temporary.string()) + "\n" +
      "set datafile separator ','\nset datafile missing ''\nset grid\nset xlabel 'epoch'\n"
      "set ylabel 'loss'\nset y2label 'accuracy (%)'\nset y2range [0:100]\nset ytics nomirror\n"
      "set y2tics\nset key outside bottom center horizontal\n"
      "plot $data using 1:3 skip 1 with linespoints lw 2 title 'train loss', "
      "$data using 1:5 skip 1 with linespoints lw 2 title 'test loss', "
      "$data using 1:(100*$6) skip 1 axes x1y2 with linespoints lw 2 title 'test accuracy'\n";
  // A gnuplot that ends early must not end this process.
  const auto previous = std::signal(SIGPIPE, SIG_IGN);
  std::fwrite(script.data(), 1, script.size(), gnuplot);
  const int status = pclose(gnuplot);
  std::signal(SIGPIPE, previous);
  std::error_code error;
  if (status == 0) std::filesystem::rename(temporary, target, error);
  if (status == 0 && !error) return "";
  std::filesystem::remove(temporary, error);
  return "no picture of the metrics: gnuplot failed";
}

}  // namespace gable::train
