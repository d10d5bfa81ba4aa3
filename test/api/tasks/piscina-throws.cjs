throw new EvalError("while loading");
