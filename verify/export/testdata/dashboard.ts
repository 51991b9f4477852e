// The dashboard as a value of Grafana's own types. TestTheDashboardFitsGrafana adds it at the end, and compiles this.
import type { Dashboard, Panel, RowPanel } from './node_modules/@grafana/schema/dist/types/raw/dashboard/x/types.gen';
import type {
	FieldConfig, Options,
} from './node_modules/@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen';

// Plain is T as JSON has it, with the values of an enum in place of its names.
type Plain<T> =
	T extends string ? `${T}` :
	T extends number ? (`${T}` extends `${infer N extends number}` ? N : T) :
	T extends (infer U)[] ? Plain<U>[] :
	T extends object ? { [K in keyof T]: Plain<T[K]> } : T;

// Grafana's type of a panel says little about what depends on the kind of panel, and on the data source.
type TimeSeries = Omit<Plain<Panel>, 'type' | 'options' | 'fieldConfig' | 'targets'> & {
	type: 'timeseries';
	options: Plain<Options>;
	fieldConfig: {
		defaults: Omit<Plain<NonNullable<Panel['fieldConfig']>['defaults']>, 'custom'> & { custom: Plain<FieldConfig> };
		overrides: [];
	};
	targets: { refId: string; expr: string; legendFormat: string; datasource: { type: string; uid: string } }[];
};

export const dashboard: Omit<Plain<Dashboard>, 'panels'> & { panels: (Plain<RowPanel> | TimeSeries)[] } =
