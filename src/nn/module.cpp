// SPDX-License-Identifier: Apache-2.0
// The registry of modules: walking, state dicts, modes, moving, printing.
#include "gable/nn/module.hpp"

#include <algorithm>
#include <unordered_map>

namespace gable::nn {

namespace {

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

void append_list(std::string& out, const char* title, const std::vector<std::string>& items) {
  if (items.empty()) return;
  out += "\n  ";
  out += title;
  for (const std::string& item : items) out += "\n    " + item;
}

// "layer1" -> depth 1, "layer1.0.conv1" -> depth 3.
size_t depth_of(const std::string& path) {
  return path.empty() ? 0 : 1 + static_cast<size_t>(std::count(path.begin(), path.end(), '.'));
}

}  // namespace

template <class F>
void AnyModule::walk(const std::string& prefix, F&& f) const {
  f(prefix, *this);
  for (const Child& c : children_) c.module->walk(join(prefix, c.name), f);
}

void AnyModule::add_name(std::string_view name) const {
  check<Error>(!name.empty() && name.find('.') == std::string_view::npos, "register",
               "expected a name without dots, got \"", name, "\"");
  auto taken = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.name == name; });
  };
  check<Error>(!taken(parameters_) && !taken(buffers_) && !taken(children_), "register",
               "expected a new name, got \"", name, "\" twice in one module");
}

std::vector<std::pair<std::string, AnyModule*>> AnyModule::children() const {
  std::vector<std::pair<std::string, AnyModule*>> out;
  for (const Child& c : children_) out.emplace_back(c.name, c.module);
  return out;
}

std::vector<std::pair<std::string, AnyModule*>> AnyModule::named_modules() {
  std::vector<std::pair<std::string, AnyModule*>> out;
  walk("", [&](const std::string& path, const AnyModule& m) {
    out.emplace_back(path, const_cast<AnyModule*>(&m));  // this one is not const
  });
  return out;
}

std::vector<std::pair<std::string, AnyParameter>> AnyModule::named_parameters() const {
  std::vector<std::pair<std::string, AnyParameter>> out;
  std::unordered_map<const void*, bool> seen;
  walk("", [&](const std::string& path, const AnyModule& m) {
    for (const auto& slot : m.parameters_) {
      AnyParameter p = slot.get(slot.member);
      if (p.master().defined() && seen.emplace(p.id(), true).second)
        out.emplace_back(join(path, slot.name), std::move(p));
    }
  });
  return out;
}

std::vector<AnyParameter> AnyModule::parameters() const {
  std::vector<AnyParameter> out;
  for (auto& [name, p] : named_parameters()) out.push_back(std::move(p));
  return out;
}

std::vector<std::pair<std::string, AnyTensor>> AnyModule::named_buffers() const {
  std::vector<std::pair<std::string, AnyTensor>> out;
  walk("", [&](const std::string& path, const AnyModule& m) {
    for (const auto& slot : m.buffers_) {
      AnyTensor t = slot.get(slot.member);
      if (t.defined()) out.emplace_back(join(path, slot.name), std::move(t));
    }
  });
  return out;
}

int64_t AnyModule::num_parameters() const {
  int64_t n = 0;
  for (const auto& [name, p] : named_parameters()) n += p.master().numel();
  return n;
}

void AnyModule::apply(const std::function<void(AnyModule&)>& f) {
  for (const Child& c : children_) c.module->apply(f);
  f(*this);
}

void AnyModule::train(bool on) {
  apply([on](AnyModule& m) { m.training_ = on; });
}

void AnyModule::zero_grad(bool keep_memory) const {
  for (const auto& [name, p] : named_parameters()) {
    if (keep_memory && p.gradient().defined())
      p.gradient().zero_();
    else
      p.gradient() = AnyTensor();
  }
}

void AnyModule::to(Device device) {
  std::unordered_map<const void*, std::pair<AnyParameter, const void*>> moved;
  apply([&](AnyModule& m) {
    for (auto& slot : m.parameters_) {
      AnyParameter before = slot.get(slot.member);
      if (!before.master().defined()) continue;
      // Keeps `before` alive, so that its id is not given to another parameter meanwhile.
      const auto [entry, is_new] = moved.try_emplace(before.id(), before, slot.member);
      slot.move(slot.member, is_new ? nullptr : entry->second.second, device);
    }
    for (auto& slot : m.buffers_) slot.move(slot.member, nullptr, device);
  });
}

StateDict AnyModule::state_dict() const {
  StateDict dict;
  walk("", [&](const std::string& path, const AnyModule& m) {
    for (const auto& slot : m.parameters_) {
      const AnyParameter p = slot.get(slot.member);
      if (p.master().defined()) dict.add(join(path, slot.name), p.master());
    }
    for (const auto& slot : m.buffers_) {
      AnyTensor t = slot.get(slot.member);
      if (t.defined()) dict.add(join(path, slot.name), std::move(t));
    }
  });
  return dict;
}

LoadResult AnyModule::load_state_dict(const StateDict& dict, LoadOptions options) {
  const StateDict own = state_dict();
  LoadResult result;
  std::vector<std::string> misfits;
  for (const auto& [name, target] : own) {
    const AnyTensor* source = dict.find(name);
    if (source == nullptr) {
      result.missing.push_back(name);
    } else if (!source->defined()) {
      misfits.push_back(concat(name, ": expected ", target.shape(), ", got an undefined tensor"));
    } else if (source->shape() != target.shape()) {
      misfits.push_back(concat(name, ": expected ", target.shape(), ", got ", source->shape()));
    } else if (is_floating_point(source->dtype()) != is_floating_point(target.dtype())) {
      misfits.push_back(concat(name, ": expected ", target.dtype(), ", got ", source->dtype()));
    }
  }
  for (const auto& [name, tensor] : dict)
    if (own.find(name) == nullptr) result.unexpected.push_back(name);
  const bool names_differ = !result.missing.empty() || !result.unexpected.empty();
  if (!misfits.empty() || (options.strict && names_differ)) {
    std::string text;
    if (options.strict) {
      append_list(text, "missing:", result.missing);
      append_list(text, "unexpected:", result.unexpected);
    }
    append_list(text, "shape or dtype:", misfits);
    fail<Error>("load_state_dict", "expected the ", own.size(), " tensors of ", describe(),
                ", got a state dict of ", dict.size(), " with", text, "\n ");
  }
  for (const auto& [name, target] : own)
    if (const AnyTensor* source = dict.find(name)) target.copy_(*source, "load_state_dict");
  for (const AnyParameter& p : parameters()) p.refresh();
  return result;
}

std::string to_string(const AnyModule& module) {
  std::string out;
  for (const auto& [path, m] : const_cast<AnyModule&>(module).named_modules()) {
    const size_t dot = path.rfind('.');
    out.append(2 * depth_of(path), ' ');
    if (!path.empty())
      out += "(" + (dot == std::string::npos ? path : path.substr(dot + 1)) + "): ";
    out += m->describe() + "\n";
  }
  return out + concat(module.num_parameters(), " parameters\n");
}

}  // namespace gable::nn
